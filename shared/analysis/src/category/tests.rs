//! Categories of traces that are written as text.

use super::*;
use crate::steps::Steps;
use replay::Replay;
use replay::index::Index;
use trace::event::Action;

const MODULE: &str = "convert@/v/site-packages/torch/nn/modules/module.py:1 main@t.py:1";
const FORWARD: &str = "forward@m.py:7 main@t.py:5";
const BACKWARD: &str = "backward@/v/site-packages/torch/_tensor.py:6 main@t.py:6";
const OPTIMIZER: &str = "step@/v/site-packages/torch/optim/adam.py:9 main@t.py:8";

/// The rule of each allocation, in the order in which they were made.
fn rules(lines: &str, user: &str) -> Vec<String> {
    let mut snapshot = trace::testing::snapshot(&format!("segment_alloc 0x1000000 209715200\n{lines}"));
    let trace = snapshot.devices.remove(0);
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
    let traits = StackTraits::build(&snapshot.symbols);
    let steps = Steps::of(input, &snapshot.symbols, &traits);
    let user = user.parse::<UserRules>().expect("rules");
    let told = Categories::of(input, &snapshot.symbols, &traits, steps.as_ref(), &user);
    let sums = told.sums(input, 0..told.len() as u32);
    assert_eq!(sums.iter().sum::<u64>(), replay.allocations.requested.iter().sum::<u64>());
    let name = |id| told.rule(id).map_or_else(|user| format!("user {user}"), |rule| rule.name().to_owned());
    (0..told.len() as u32).map(|id| format!("{}: {}", told.get(id).code(), name(id))).collect()
}

/// Two steps of a training job, in which every kind of allocation occurs.
fn training() -> String {
    let setup = format!("alloc 0x1000000 4096 {MODULE}\nalloc 0x1001000 512 {MODULE}\nfree 0x1001000\n");
    let step = |is_first: bool| {
        let state = if is_first { format!("alloc 0x1010000 4096 {OPTIMIZER}\n") } else { String::new() };
        format!(
            "alloc 0x1002000 1024 main@t.py:4
             alloc 0x1003000 2048 {FORWARD}
             alloc 0x1004000 2048 {FORWARD}
             free 0x1004000
             alloc 0x1005000 512 main@t.py:5
             alloc 0x1005200 512 {BACKWARD}
             alloc 0x1006000 2048
             alloc 0x1007000 4096
             free 0x1003000
             free 0x1006000
             free 0x1005200
             {state}alloc 0x1008000 4096 {OPTIMIZER}
             free 0x1008000
             alloc 0x1009000 512 zero_grad@/v/torch/optim/optimizer.py:2 main@t.py:9
             free 0x1009000
             free 0x1007000
             free 0x1005000
             free 0x1002000\n"
        )
    };
    format!("{setup}{}{}", step(true), step(false))
}

#[test]
fn a_training_step_has_every_category() {
    let got = rules(&training(), "");
    let first = [
        "parameters: module, kept",
        "temporary: module, freed",
        "inputs: before forward, kept",
        "activations: forward, kept",
        "temporary: forward, freed",
        "activations: forward, kept",
        "temporary: backward, freed",
        "temporary: backward, freed",
        "gradients: backward, kept",
        "optimizer_state: optimizer, kept",
        "temporary: optimizer, freed",
    ];
    assert_eq!(got[..first.len()], first);
}

#[test]
fn rules_of_the_user_come_first() {
    let got = rules(&training(), "# comment\n\nm.py:7 = KV cache\nt.py = workspace");
    assert_eq!(got[3], "kv_cache: user 0");
    assert_eq!(got[2], "workspace: user 1");
    // Without a frame, no user rule fits.
    assert_eq!(got[8], "gradients: backward, kept");
    for (text, want) in [
        ("m.py", "Line 1: “m.py” has no “=”: write a part of a line or path, “=”, and a category."),
        ("\n = inputs", "Line 2: Name a part of a function, a file or a line, such as attention.py:54."),
        (
            "\nm.py = things",
            "Line 2: “things” is no category. The categories are parameters, gradients, optimizer state, activations, \
             inputs, temporary, KV cache, workspace, unknown.",
        ),
    ] {
        assert_eq!(text.parse::<UserRules>(), Err(want.to_owned()));
    }
    // What is written is read again, and a part has one rule.
    let rules: UserRules = "a=b.py = inputs\nt.py=kv_cache\na=b.py = optimizer state".parse().expect("rules");
    assert_eq!(rules.to_string(), "a=b.py = optimizer state\nt.py = KV cache\n");
    assert_eq!(rules.to_string().parse(), Ok(rules.clone()));
    let mut fewer = rules;
    fewer.remove("a=b.py");
    assert_eq!(fewer.rules().len(), 1);
    let many: String = (0..=trace::limits::CATEGORY_RULES).map(|i| format!("f{i} = inputs\n")).collect();
    assert!(many.parse::<UserRules>().is_err_and(|why| why.contains("There are already 200 rules")));
}

#[test]
fn what_was_live_at_a_failure_was_not_freed_before() {
    let pass = format!("alloc 0x1003000 2048 {FORWARD}\nalloc 0x1004000 2048 {FORWARD}\nfree 0x1004000\n");
    // The exception frees what the backward pass would have found; the program tries again with less.
    let lines = training() + &pass + "oom 100 4096\nfree 0x1003000\n" + &training();
    let got = rules(&lines, "");
    let count = |rule: &str| got.iter().filter(|name| *name == rule).count();
    assert_eq!(count("activations: forward, until a failure"), 1, "{got:#?}");
    // The trace ends in the backward pass.
    let got = rules(&(training() + &pass + &format!("alloc 0x1005200 640 {BACKWARD}\n")), "");
    assert_eq!(got.last().unwrap(), "temporary: backward, still live");
}

/// Twelve passes of a model that does not train. Each keeps so many tensors until the next one has made its own.
fn inference(kept: u64) -> String {
    let mut lines = format!("alloc 0x1000000 4096 {MODULE}\n");
    for step in 0..12_u64 {
        let place = |step: u64, tensor: u64| 0x200_0000 + (step % 2) * 0x10_0000 + tensor * 0x1_0000;
        lines += "alloc 0x1002000 512 main@t.py:4\n";
        for tensor in 0..kept {
            lines += &format!("alloc {} {} cat@m.py:9 {FORWARD}\n", place(step, tensor), 1_024 * (step + 1));
            if step > 0 {
                lines += &format!("free {}\n", place(step + 1, tensor));
            }
        }
        lines += &format!("alloc 0x1003000 2048 {FORWARD}\n");
        lines += "alloc 0x1004000 512 sample@t.py:8\nalloc 0x1005000 512 sample@t.py:9\n";
        lines += "free 0x1003000\nfree 0x1002000\nfree 0x1004000\nfree 0x1005000\n";
    }
    lines
}

/// A forgotten `no_grad` looked like a cache of keys and values.
#[test]
fn what_autograd_keeps_for_no_backward_pass_is_no_cache() {
    let caches = |kept: u64| rules(&inference(kept), "").iter().filter(|rule| rule.starts_with("kv_cache")).count();
    assert_eq!([1, 2, 3, 8].map(caches), [12, 24, 0, 0]);
}

#[test]
fn inference_has_no_gradients() {
    let got = rules(&inference(1), "");
    let want = ["inputs: before forward, kept", "kv_cache: inference, kept", "activations: inference"];
    assert_eq!(got[0], "parameters: module, kept");
    assert_eq!(got[6..9], want);
}

#[test]
fn a_list_that_grows_is_of_one_kind_to_its_end() {
    let mut lines = format!("alloc 0x1000000 4096 {MODULE}\n");
    for step in 0..12_u64 {
        lines += &format!("alloc 0x1002000 512 main@t.py:4\nalloc {} 1024 keep@t.py:3\n", 0x200_0000 + step * 1_024);
        lines += &format!("alloc 0x1003000 2048 {FORWARD}\n");
        lines += "alloc 0x1004000 512 sample@t.py:8\nalloc 0x1005000 512 sample@t.py:9\n";
        lines += "free 0x1003000\nfree 0x1002000\nfree 0x1004000\nfree 0x1005000\n";
    }
    let got = rules(&lines, "");
    let kept: Vec<&str> = got.iter().skip(2).step_by(5).map(String::as_str).collect();
    assert_eq!(kept[1..], ["unknown: no rule"; 11], "{got:?}");
}

#[test]
fn what_a_server_never_frees_is_no_input() {
    let requests =
        "alloc 0x1002000 512 prefill@s.py:4\nalloc 0x1003000 2048 prefill@s.py:5\nfree 0x1002000\nfree 0x1003000\n";
    let served = |before: &str| rules(&format!("{before}{}", requests.repeat(12)), "")[0].clone();
    let weights = "alloc 0x1000000 4096 load@s.py:1\n";
    assert_eq!(served(weights), "parameters: own code, never freed");
    // Beside a module's parameters, it may be data that stays on the device.
    assert_eq!(served(&format!("{weights}alloc 0x1010000 9192 {MODULE}\n")), "inputs: own code, kept");
}

/// Six steps that each have a batch, which the next one replaces, and keep something between two steps.
fn steps_that_keep(kept_for: u64) -> String {
    let mut lines = format!("alloc 0x1000000 4096 {MODULE}\n");
    for step in 0..6_u64 {
        let batch = 0x200_0000 + (step % 2) * 0x10_0000;
        lines += &format!("alloc {batch} 1024 main@t.py:4\n");
        if step > 0 {
            lines += &format!("free {}\n", 0x200_0000 + ((step + 1) % 2) * 0x10_0000);
        }
        lines += &format!("alloc 0x1003000 2048 {FORWARD}\nalloc 0x1004000 4096\nfree 0x1003000\n");
        lines += &format!("alloc 0x1005000 512 {OPTIMIZER}\nfree 0x1005000\nfree 0x1004000\n");
        lines += &format!("alloc {} 700 keep@t.py:30\n", 0x300_0000 + step * 0x1000);
        if step >= kept_for {
            lines += &format!("free {}\n", 0x300_0000 + (step - kept_for) * 0x1000);
        }
    }
    lines
}

#[test]
fn what_the_program_keeps_for_several_steps_is_no_batch() {
    let of = |told: &[String], nth: usize| told[1 + nth * 5..][..5].to_vec();
    for (kept_for, kept) in [(1, "inputs: before forward, kept"), (9, "unknown: no rule")] {
        let told = rules(&steps_that_keep(kept_for), "");
        assert_eq!(of(&told, 1)[0], "inputs: before forward, kept", "{told:?}");
        assert_eq!(of(&told, 1)[4], kept, "{told:?}");
    }
}

#[test]
fn names_and_sizes_of_libraries_tell() {
    let model = format!("alloc 0x1000000 4096 {MODULE}\nalloc 0x1002000 2048 {FORWARD}\n");
    let cases = [
        ("alloc 0x2000000 8519680 forward@m.py:8", "workspace: workspace by size"),
        ("alloc 0x2000000 8519680 forward@m.py:8\nfree 0x2000000", "activations: inference"),
        ("alloc 0x2000000 100 at::cuda::getCUDABlasLtWorkspace()@??", "workspace: workspace by name"),
        ("alloc 0x2000000 100 update@/v/transformers/cache_utils.py:3 main@t.py:1", "kv_cache: cache by name"),
        ("alloc 0x2000000 100 append@/m/cache.py:3 main@t.py:1", "kv_cache: inference, cache by name"),
        ("alloc 0x2000000 100 append@/m/cache.py:3 main@t.py:1\nfree 0x2000000", "activations: inference"),
        ("alloc 0x2000000 100 default_collate@/v/torch/utils/data/_utils/collate.py:3", "inputs: loader"),
        ("alloc 0x2000000 100 forward@m.py:1 unpack_hook@/v/torch/utils/checkpoint.py:9", "activations: recomputed"),
        (
            "alloc 0x2000000 100 __init__@/v/site-packages/torch/optim/adagrad.py:94 main@t.py:2\nalloc 0x3000000 2048 \
             forward@m.py:7 main@t.py:5",
            "optimizer_state: optimizer, built",
        ),
        ("alloc 0x2000000 100 c10d::Reducer::initialize_buckets()@??", "gradients: gradient buckets"),
    ];
    for (line, want) in cases {
        assert_eq!(rules(&format!("{model}{line}"), "")[2], want, "{line}");
    }
}

#[test]
fn a_leaked_tensor_of_32_mib_is_no_workspace() {
    let model = format!("alloc 0x1000000 4096 {MODULE}\nalloc 0x1002000 2048 {FORWARD}\n");
    let kept = "alloc 0x4000000 33554432 forward@m.py:8\nalloc 0x6000000 33554432 forward@m.py:8\nalloc 0x8000000 33554432 forward@m.py:8";
    for told in &rules(&format!("{model}{kept}"), "")[2..] {
        assert!(!told.starts_with("workspace"), "{told}");
    }
}

#[test]
fn what_is_not_told_is_unknown() {
    // No stacks at all, and code without a model.
    let bare = "alloc 0x1000000 4096\nalloc 0x1002000 512\nfree 0x1002000";
    assert_eq!(rules(bare, ""), ["unknown: no rule", "unknown: no rule"]);
    let own = "alloc 0x1000000 4096 main@t.py:1\nalloc 0x1002000 512 main@t.py:2\nfree 0x1002000";
    assert_eq!(rules(own, ""), ["unknown: no rule", "unknown: no rule"]);
}

/// With the names of the forward pass, activations became gradients: what had no stack counted as the backward pass's.
#[test]
fn a_lost_stack_leaves_unknown_and_makes_nothing_else_of_it() {
    let category = |told: &str| told.split(':').next().unwrap_or_default().to_owned();
    for (name, lines) in [("training", training()), ("inference", inference(1)), ("steps", steps_that_keep(1))] {
        let whole = rules(&lines, "");
        let mut stacks: Vec<&str> =
            lines.lines().map(str::trim).filter_map(|line| line.splitn(4, ' ').nth(3)).collect();
        stacks.sort_unstable();
        stacks.dedup();
        for lost in 1..1_u32 << stacks.len() {
            let is_lost =
                |stack: &str| stacks.iter().position(|known| *known == stack).is_some_and(|i| lost >> i & 1 == 1);
            let damaged: Vec<String> = (lines.lines().map(str::trim))
                .map(|line| match line.splitn(4, ' ').nth(3).filter(|stack| is_lost(stack)) {
                    Some(stack) => line.replace(stack, "lost"),
                    None => line.to_owned(),
                })
                .collect();
            let got = rules(&damaged.join("\n"), "");
            assert_eq!(got.len(), whole.len());
            for (id, (got, whole)) in got.iter().zip(&whole).enumerate() {
                let is_kept = category(got) == category(whole) || category(got) == "unknown";
                assert!(is_kept, "{name} without {lost:b} of {stacks:?}: allocation {id} was {whole}, is {got}");
            }
        }
    }
}

#[test]
fn what_was_made_where_events_are_missing_is_unknown() {
    let lines = format!("segment_alloc 0x1000000 209715200\n{}", training());
    let mut snapshot = trace::testing::snapshot(&lines);
    let mut trace = snapshot.devices.remove(0);
    // The first gradient of the second step: its allocation is lost, and its free is not.
    let events: Vec<_> = trace.events.iter().collect();
    let lost = events.iter().rposition(|event| event.address.0 == 0x100_7000 && event.action == Action::Alloc);
    let lost = lost.expect("a gradient");
    trace.events = trace::Events::default();
    events.iter().enumerate().filter(|(i, _)| *i != lost).for_each(|(_, event)| trace.events.push(*event));
    trace.losses = vec![trace::Loss { position: lost as u32, events: 1, ..trace::Loss::default() }];
    let replay = Replay::build(&trace, &mut snapshot.tags, &snapshot.settings);
    let input = Replayed { trace: &trace, tags: &snapshot.tags, replay: &replay };
    let traits = StackTraits::build(&snapshot.symbols);
    let steps = Steps::of(input, &snapshot.symbols, &traits);
    let told = Categories::of(input, &snapshot.symbols, &traits, steps.as_ref(), &UserRules::default());
    let unseen: Vec<u32> = (0..told.len() as u32).filter(|id| replay.is_unseen(*id)).collect();
    assert_eq!(unseen.len(), 1);
    assert_eq!(told.get(unseen[0]), Category::Unknown);
}

/// What `p.data = p.data - …` makes was optimizer state, and the program had no parameters.
#[test]
fn what_an_optimizer_puts_in_place_of_a_parameter_is_one() {
    let scratch = format!("alloc 0x1008000 4096 {OPTIMIZER}\nfree 0x1008000");
    let lines = training();
    let at: Vec<usize> = lines.match_indices("alloc 0x1008000").map(|(at, _)| at).collect();
    let (first, second) = lines.split_at(at[1]);
    let replaces = |lines: &str, new: &str, old: &str| {
        let lines = lines.replace("free 0x1008000", "");
        let scratch = scratch.split('\n').next().unwrap_or_default();
        lines.replace(scratch, &format!("alloc {new} 4096 {OPTIMIZER}\nfree {old}"))
    };
    let lines = replaces(first, "0x1020000", "0x1000000") + &replaces(second, "0x1030000", "0x1020000");
    let found = rules(&lines, "");
    let count = |name: &str| found.iter().filter(|rule| rule.as_str() == name).count();
    assert_eq!(count("parameters: optimizer, in place of a parameter"), 2, "{found:?}");
    assert_eq!(count("optimizer_state: optimizer, kept"), 1, "{found:?}");
}

#[test]
fn where_frames_of_cpp_were_recorded_what_has_none_is_no_gradient() {
    let got = rules(&training(), "");
    let cpp = training().replace(FORWARD, &format!("at::empty@?? {FORWARD}"));
    let told = rules(&cpp, "");
    assert_eq!((got[8].as_str(), told[8].as_str()), ("gradients: backward, kept", "unknown: no rule"));
    assert_eq!(told[3], got[3]);
}

#[test]
fn every_rule_has_its_words() {
    for (number, rule) in Rule::ALL.into_iter().enumerate() {
        assert_eq!(rule as usize, number);
        assert!(rule.reason().ends_with('.'), "{}", rule.name());
        let row = format!("| {} | ", rule.name());
        let line = include_str!("CATEGORIES.md").lines().find(|line| line.starts_with(&row));
        let tells = format!(" | {} | {} |", rule.category().name(), rule.reason());
        assert!(line.is_some_and(|line| line.ends_with(&tells)), "the documentation has no row {row}…{tells}");
        assert_eq!(Rule::ALL.iter().filter(|other| other.name() == rule.name()).count(), 1, "{}", rule.name());
    }
    assert!(Rule::ALL.len() + trace::limits::CATEGORY_RULES < usize::from(u8::MAX));
    for category in Category::ALL {
        assert_eq!(Category::from_name(category.name()), Some(category));
        assert_eq!(Category::from_name(category.code()), Some(category));
    }
}
