"""A small training run as a process of its own, to be killed by the tests."""

import argparse
import sys
import time
from pathlib import Path

import torch

from asterism.nn.set_transformer import SetTransformer
from asterism.priors import GaussianMixturePrior
from asterism.training import PriorSource, TrainingPlan, train


def main(*options):
    """Train as told by the options, here or in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--shards", type=int)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--rarely", action="store_true", help="no checkpoint but the last")
    arguments = parser.parse_args(options)

    draw = PriorSource(GaussianMixturePrior(n_points=(20, 40)), batch_size=4, seed=0)

    def source(index):
        time.sleep(arguments.pause)
        return draw(index)

    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = SetTransformer(width=16, heads=2, n_inducing=4)
    plan = TrainingPlan(
        steps=arguments.steps,
        schedule="cosine",
        ema=0.9,
        clip=5.0,
        shards=arguments.shards,
        log_every=2,
        checkpoint_seconds=1e9,
        checkpoint_steps=None if arguments.rarely else 3,
    )
    train(module, source, plan, seed=7, run_dir=arguments.directory, distributed=True)
    weights = torch.cat([p.detach().flatten() for p in module.parameters()])
    torch.save(weights, arguments.directory / "weights.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
