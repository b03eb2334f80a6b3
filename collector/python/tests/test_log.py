"""The lines on standard error."""

import contextlib
import io
import os
import unittest
import unittest.mock

from vramscope import _log


class LogTest(unittest.TestCase):
    def test_a_name_is_text_in_the_line_of_the_program(self):
        cases = [
            ("out.pickle, wörter 🚀", "out.pickle, wörter 🚀"),
            ("\x1b]0;owned\x07\x1b[2J\x9b31m\x7f", "\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\u{9b}31m\\u{7f}"),
            ("a\nvramscope: forged\tb", "a\\u{a}vramscope: forged\\u{9}b"),
            ("gpt\u202e\u2066\u200b\ufeff\u2028\U000e0041", "gpt\\u{202e}\\u{2066}\\u{200b}\\u{feff}\\u{2028}\\u{e0041}"),
        ]
        for text, want in cases:
            written = io.StringIO()
            with unittest.mock.patch.dict(os.environ), contextlib.redirect_stderr(written):
                os.environ.pop("VRAMSCOPE_QUIET", None)
                _log.log(text)
            self.assertEqual(written.getvalue(), f"vramscope: {want}\n")


if __name__ == "__main__":
    unittest.main()
