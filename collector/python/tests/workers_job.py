"""A job with DataLoader workers: `workers_job.py FOLDER [options as JSON]`. It prints JSON as its last line."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


class Data:
    """Items that contain what their worker knows of an agent."""

    def __len__(self):
        return 48

    def __getitem__(self, at):
        import torch

        agent = sys.modules.get("vramscope._agent")
        agent = agent and agent.current()
        state = "none" if agent is None else agent.state
        return torch.full((256,), at), f"{os.getpid()} {state}"


def main(folder, options):
    import pickle

    import torch

    import job
    import vramscope

    if options.get("attach", True):
        vramscope.attach(out=os.path.join(folder, "run.vramscope"), stacks=None, mode=options["mode"])
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, context=None)
    seen, workers = 0, set()
    kept = [job.train(torch, "cuda", 6)]
    data = torch.utils.data.DataLoader(
        Data(),
        batch_size=4,
        num_workers=2,
        pin_memory=True,
        persistent_workers=options["persistent"],
        multiprocessing_context=options["method"],
    )
    for _ in range(2):
        for batch, said in data:
            vramscope.step()
            on_gpu = batch.to("cuda", non_blocking=True)
            seen += on_gpu.shape[0]
            workers.update(said)
            del on_gpu
    kept.append(job.train(torch, "cuda", 6))
    with open(os.path.join(folder, "torch.pickle"), "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file)
    # Persistent workers end with the program.
    globals()["kept"], globals()["data"] = kept, data
    states = sorted({text.split()[1] for text in workers})
    print(json.dumps({"seen": seen, "states": states, "here": str(os.getpid()) in str(workers)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
