"""The training loop: deterministic, resumable after any kill, the same on one rank or two."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import training_script
from asterism.exceptions import TrainingError
from asterism.nn.set_transformer import SetTransformer
from asterism.priors import GaussianMixturePrior
from asterism.training import ArraySource, PriorSource, TrainingPlan, derive_seed, train
from asterism.training.history import History, read_history
from asterism.training.muon import Muon
from asterism.training.optim import make_optimizer

SCRIPT = Path(training_script.__file__)


class Noisy(nn.Module):
    """Draws noise inside the module, so that a run depends on its own generator too."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    def loss(self, x):
        return (self.net(x + torch.randn_like(x)) - x).square().mean()


def fresh(module_class=Noisy):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return module_class()


def weights_of(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def rows():
    return ArraySource(torch.randn(50, 2, generator=torch.Generator().manual_seed(1)), 16, seed=3)


def run_script(directory, *options, steps, **kwargs):
    command = [sys.executable, str(SCRIPT), str(directory), "--steps", str(steps), *options]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, **kwargs)


def test_same_seed_gives_the_same_weights_and_leaves_the_global_generator_alone():
    torch.manual_seed(123)
    before = torch.get_rng_state()
    results = []
    for _ in range(2):
        module = fresh()
        train(module, rows(), TrainingPlan(steps=20), seed=5)
        results.append(weights_of(module))
    other = fresh()
    train(other, rows(), TrainingPlan(steps=20), seed=6)
    assert torch.equal(*results)
    assert not torch.equal(results[0], weights_of(other))
    assert torch.equal(before, torch.get_rng_state())


def test_muon_moves_matrices_by_all_their_directions_alike_and_vectors_by_adam():
    torch.manual_seed(0)
    layer, alone = nn.Linear(16, 12), nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    gradient = torch.randn(12, 1) @ torch.randn(1, 16) + 0.01 * torch.randn(12, 16)
    layer.weight.grad, layer.bias.grad = gradient, torch.ones(12)
    optimizer = make_optimizer("muon", [*layer.parameters(), *alone.parameters()], 0.1, 0.0)
    assert {type(part).__name__ for part in optimizer.parts} == {"Muon", "AdamW"}
    optimizer.step()
    sizes = torch.linalg.svdvals(before - layer.weight.detach())
    shrink = torch.linalg.svdvals(gradient)
    assert shrink[0] > 100 * shrink[-1]
    assert sizes[0] < 10 * sizes[-1]
    torch.testing.assert_close(optimizer.param_groups[1]["params"][0], layer.bias)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    still = layer.weight.detach().clone()
    optimizer.step()
    assert torch.equal(still, layer.weight)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch before 2.9 has no Muon")
def test_muon_is_that_of_torch_but_for_its_rounding():
    torch.manual_seed(1)
    ours, theirs = (nn.Parameter(torch.ones(24, 10)) for _ in range(2))
    optimizers = (
        Muon([ours], lr=0.1, weight_decay=0.3),
        torch.optim.Muon([theirs], lr=0.1, weight_decay=0.3, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(5):
        gradient = torch.randn(24, 10)
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    moved = (theirs - 1).norm()
    assert (ours - theirs).norm() < 0.02 * moved


def test_background_workers_change_nothing():
    prior = GaussianMixturePrior(n_points=(10, 20))
    results = []
    for workers in (0, 2):
        module = fresh(lambda: SetTransformer(width=8, heads=2, n_inducing=4))
        plan = TrainingPlan(steps=6, workers=workers)
        train(module, PriorSource(prior, 3, seed=1), plan, seed=1)
        results.append(weights_of(module))
    assert torch.equal(*results)


def test_a_source_is_a_function_of_its_index():
    source = PriorSource(GaussianMixturePrior(), 2, seed=9)
    late, early = source(7), source(0)
    assert torch.equal(source(7).x, late.x)
    assert early.x.shape != late.x.shape or not torch.equal(early.x, late.x)
    batches = ArraySource(torch.arange(10.0)[:, None], 4, seed=0)
    epoch = torch.cat([batches(i) for i in range(len(batches))]).flatten()
    assert sorted(epoch.tolist()) == list(range(10))
    assert derive_seed(1, 2) != derive_seed(2, 1)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("ema", [None, 0.9])
def test_interrupted_in_process_run_resumes_bit_for_bit(tmp_path, ema, optimizer):
    plan = TrainingPlan(
        steps=30, schedule="cosine", optimizer=optimizer, ema=ema, clip=1.0, log_every=7
    )
    whole = fresh()
    expected = train(whole, rows(), plan, seed=2)

    def failing(limit):
        source = rows()

        def draw(index):
            if index >= limit:
                raise RuntimeError("power cut")
            return source(index)

        return draw

    often = TrainingPlan(**{**plan.__dict__, "checkpoint_steps": 4})
    for limit in (1, 9, 22):
        with pytest.raises(RuntimeError, match="power cut"):
            train(fresh(), failing(limit), often, seed=2, run_dir=tmp_path)
    module = fresh()
    history = train(module, rows(), often, seed=2, run_dir=tmp_path)
    assert torch.equal(weights_of(whole), weights_of(module))
    assert [r["loss"] for r in history] == [r["loss"] for r in expected]
    again = fresh()
    train(again, rows(), often, seed=2, run_dir=tmp_path)  # a finished run has nothing to do
    assert torch.equal(weights_of(whole), weights_of(again))


@pytest.mark.slow
def test_sigkill_at_random_moments_resumes_bit_for_bit(tmp_path):
    steps = 60
    training_script.main(str(tmp_path / "whole"), "--steps", str(steps))
    chance = random.Random(0)
    killed = 0
    for _ in range(3):
        process = run_script(tmp_path / "killed", "--pause", "0.02", steps=steps)
        progress = tmp_path / "killed" / "history.jsonl"
        seen = len(read_history(progress))
        deadline = time.monotonic() + 60
        # Wait until it is at work, then strike at a random moment, in mid-write or not.
        while len(read_history(progress)) <= seen + 2 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.3))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait(60)
    assert killed >= 2
    training_script.main(str(tmp_path / "killed"), "--steps", str(steps))
    expected = torch.load(tmp_path / "whole" / "weights.pt")
    found = torch.load(tmp_path / "killed" / "weights.pt")
    assert torch.equal(expected, found)
    records = [read_history(tmp_path / name / "history.jsonl") for name in ("whole", "killed")]
    assert [r["loss"] for r in records[0]] == [r["loss"] for r in records[1]]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_polite_signal_saves_before_it_stops(tmp_path, number, code):
    process = run_script(tmp_path, "--pause", "0.02", "--rarely", steps=100_000)
    while len(read_history(tmp_path / "history.jsonl")) < 3:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(60) in (code, -number)
    progress = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["progress"]
    assert progress["step"] >= read_history(tmp_path / "history.jsonl")[-1]["step"]


@pytest.mark.slow
def test_two_ranks_match_one_rank_with_both_shards(tmp_path):
    training_script.main(str(tmp_path / "one"), "--steps", "12", "--shards", "2")
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *(str(SCRIPT), str(tmp_path / "two"), "--steps", "12", "--shards", "2"),
    ]
    subprocess.run(
        command,
        check=True,
        timeout=180,
        capture_output=True,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    weights = [torch.load(tmp_path / name / "weights.pt") for name in ("one", "two")]
    torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-6)
    losses = [
        [r["loss"] for r in read_history(tmp_path / name / "history.jsonl")]
        for name in ("one", "two")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_another_plan_is_not_taken_for_a_continuation(tmp_path):
    train(fresh(), rows(), TrainingPlan(steps=3), seed=0, run_dir=tmp_path)
    with pytest.raises(TrainingError, match=r"lr=0\.001, not 0\.01"):
        train(fresh(), rows(), TrainingPlan(steps=3, lr=0.01), seed=0, run_dir=tmp_path)
    with pytest.raises(TrainingError, match="seed=0, not 1"):
        train(fresh(), rows(), TrainingPlan(steps=3), seed=1, run_dir=tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / "checkpoint.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match=r"checkpoint\.pt cannot be read"):
        train(fresh(), rows(), TrainingPlan(steps=1), run_dir=tmp_path)


def test_a_loss_that_is_not_finite_stops_the_run():
    with pytest.raises(TrainingError, match=r"no longer finite \(nan\) at step 1"):
        train(fresh(), lambda i: torch.full((4, 2), torch.inf), TrainingPlan(steps=5))


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    class Fragile(Noisy):
        def loss(self, x):
            # Finite, but with a gradient that is not.
            weight = self.net[0].weight
            return super().loss(x) + (0 * weight).sqrt().sum() * 0

    with pytest.raises(TrainingError, match="gradient is no longer finite"):
        train(fresh(Fragile), rows(), TrainingPlan(steps=5), run_dir=tmp_path)
    assert not (tmp_path / "checkpoint.pt").exists()


def test_a_run_stopped_early_is_finished(tmp_path):
    plan = TrainingPlan(steps=100, log_every=10)
    results = []
    for _ in range(2):
        module = fresh()
        train(module, rows(), plan, run_dir=tmp_path, should_stop=lambda r: len(r) >= 3)
        results.append(weights_of(module))
    assert torch.equal(*results)


def test_another_identity_is_not_taken_for_a_continuation(tmp_path):
    plan = TrainingPlan(steps=3)
    train(fresh(), rows(), plan, run_dir=tmp_path, identity={"batch_size": 2})
    with pytest.raises(TrainingError, match="batch_size=2, not 5"):
        train(fresh(), rows(), plan, run_dir=tmp_path, identity={"batch_size": 5})
    with pytest.raises(TrainingError, match="another network"):
        train(nn.Linear(3, 1), rows(), plan, run_dir=tmp_path, identity={"batch_size": 2})


def test_an_object_without_a_repr_is_known_again(tmp_path):
    class Prior:
        pass

    for _ in range(2):
        train(fresh(), rows(), TrainingPlan(steps=2), run_dir=tmp_path, identity={"prior": Prior()})


def test_numpy_numbers_in_a_plan_can_be_resumed(tmp_path):
    plan = TrainingPlan(steps=np.int64(3), lr=np.float64(1e-3))
    for _ in range(2):
        train(fresh(), rows(), plan, run_dir=tmp_path)
    assert type(plan.lr) is float


def test_processes_share_work_only_when_asked(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    train(fresh(), rows(), TrainingPlan(steps=2))  # would wait for the other process for ever


def test_batches_of_any_make_reach_the_module():
    class Pair(nn.Linear):
        def loss(self, batch):
            (x, target), extra = batch["rows"], batch["extra"]
            return (self(x) - target).square().mean() + 0 * len(extra)

    source = lambda i: {"rows": (torch.ones(4, 2), torch.zeros(4, 1)), "extra": np.ones(3)}  # noqa: E731
    for workers in (0, 1):
        history = train(fresh(lambda: Pair(2, 1)), source, TrainingPlan(steps=3, workers=workers))
        assert len(history) == 1


def test_wall_time_drives_schedule_and_stop():
    def slow(index):
        time.sleep(0.01)
        return torch.ones(2, 2)

    plan = TrainingPlan(steps=10**9, max_seconds=1.0, schedule="cosine", log_every=1)
    history = train(fresh(), slow, plan)
    assert history[-1]["step"] == len(history)
    assert 2 <= len(history) <= 100
    rates = [record["lr"] for record in history]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < rates[0]


def test_early_stop_is_asked_after_every_record():
    plan = TrainingPlan(steps=100, log_every=10)
    history = train(fresh(), rows(), plan, should_stop=lambda records: len(records) == 3)
    assert [record["step"] for record in history] == [10, 20, 30]


def test_the_average_replaces_the_weights_at_the_end():
    plain, averaged = fresh(), fresh()
    train(plain, rows(), TrainingPlan(steps=10), seed=1)
    train(averaged, rows(), TrainingPlan(steps=10, ema=0.99), seed=1)
    start = weights_of(fresh())
    moved = (weights_of(plain) - start).norm()
    assert 0 < (weights_of(averaged) - start).norm() < moved


def test_history_is_cut_back_to_the_checkpoint(tmp_path):
    path = tmp_path / "history.jsonl"
    lines = [json.dumps({"step": step, "loss": 1.0}) for step in (10, 20, 30)]
    path.write_text("\n".join(lines) + '\n{"step": 4')
    history = History(path)
    history.rewind(20)
    history.append({"step": 25, "loss": 0.5})
    assert [record["step"] for record in read_history(path)] == [10, 20, 25]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "steps=-1"),
        ({"steps": 1, "ema": 1.5}, r"ema=1\.5"),
        ({"steps": 1, "schedule": "linear"}, "schedule='linear'"),
        ({"steps": 1, "lr": 0.0}, r"lr=0\.0 is out of range"),
        ({"steps": 1, "warmup": 1.0}, r"warmup=1\.0"),
        ({"steps": 1, "clip": -1.0}, r"clip=-1\.0"),
        ({"steps": 1, "max_seconds": 0}, "max_seconds=0"),
        ({"steps": 1, "workers": -1}, "workers=-1"),
    ],
)
def test_a_bad_plan_is_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingPlan(**options)
    with pytest.raises(ValueError, match="optimizer='sgd'"):
        train(fresh(), rows(), TrainingPlan(steps=1, optimizer="sgd"))
