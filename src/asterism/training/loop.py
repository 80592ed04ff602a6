"""The training loop: the only one in the library.

    for step in 0 … steps:
        loss = Σ_shard objective(module, source(step · shards + shard)) / shards
        backward, clip, optimiser step, moving average

What a step does depends on the weights, the optimiser's state and the step's number alone: batches
come from a pure function of their index and the torch generator is seeded anew for every index. A
run that is killed and resumed therefore ends with the same weights, bit for bit, as one that never
stopped (with a schedule driven by steps, on the same machine and number of threads).

Under ``torchrun`` the shards of a step are dealt out to the ranks and gradients averaged: two ranks
match one rank that works through both shards itself.
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from asterism.exceptions import TrainingError
from asterism.training.checkpoint import load_checkpoint, save_checkpoint
from asterism.training.distributed import Ranks, ranks
from asterism.training.history import History, Record
from asterism.training.interrupt import StopRequest, stop_request
from asterism.training.optim import make_optimizer, rate_factor
from asterism.training.plan import TrainingPlan
from asterism.training.seeding import borrowed_generators, seed_generators
from asterism.training.sources import NOISE, Indices, Source, derive_seed, move, stream
from asterism.training.surroundings import undisturbed

__all__ = ["train"]

Objective = Callable[[nn.Module, Any], Tensor]


class _ObjectiveModule(nn.Module):
    """Module and objective as one module, since torch synchronises gradients of a forward pass."""

    def __init__(self, module: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.module = module
        self.objective = objective

    def forward(self, batch: Any) -> Tensor:
        return self.objective(self.module, batch)


def _own_loss(module: nn.Module, batch: Any) -> Tensor:
    return module.loss(batch)  # type: ignore[operator]


@undisturbed
def train(
    module: nn.Module,
    source: Source,
    plan: TrainingPlan,
    *,
    objective: Objective = _own_loss,
    seed: int = 0,
    run_dir: str | Path | None = None,
    identity: Mapping[str, Any] | None = None,
    distributed: bool = False,
    verbose: bool = False,
    description: str = "training",
    should_stop: Callable[[list[Record]], bool] | None = None,
) -> list[Record]:
    """Train ``module`` in place, on the device it is on, and return the history.

    Parameters
    ----------
    module : torch.nn.Module
        Trained in place; left in evaluation mode.
    source : callable
        ``source(index)`` gives a batch; see :mod:`asterism.training.sources`.
    plan : TrainingPlan
        How to optimise.
    objective : callable, default=``module.loss(batch)``
        ``objective(module, batch)`` gives a scalar to minimise.
    seed : int
        Fixes every random number drawn inside the module.
    run_dir : path or None
        Keep ``checkpoint.pt`` and ``history.jsonl`` there and resume from them.
    identity : mapping or None
        What else makes this run this run: prior, batch size, architecture. A checkpoint of another
        identity is refused.
    distributed : bool
        Share the work with the other processes ``torchrun`` started, which must see ``run_dir`` on
        a common file system.
    verbose : bool
        Show one progress bar.
    description : str
        What the progress bar says.
    should_stop : callable or None
        Asked after every history record; stops early, for good, when it says True.

    Returns
    -------
    list of dict
        Records with ``step``, ``loss``, ``lr``, ``seconds`` (wall) and ``cpu_seconds``.
    """
    device = next(module.parameters()).device
    with (
        borrowed_generators(device),
        ranks(device, active=distributed) as group,
        stop_request(active=run_dir is not None) as request,
    ):
        run = _Run(module, plan, objective, seed, run_dir, dict(identity or {}), group, request)
        run.resume()
        with tqdm(
            total=plan.steps,
            initial=run.step,
            desc=description,
            unit="step",
            disable=not (verbose and group.leads),
        ) as bar:
            run.go(source, bar, should_stop)
    return run.history.records


class _Run:
    """State of one run: what a checkpoint holds, and the step that changes it."""

    def __init__(
        self,
        module: nn.Module,
        plan: TrainingPlan,
        objective: Objective,
        seed: int,
        run_dir: str | Path | None,
        identity: dict[str, Any],
        group: Ranks,
        request: StopRequest,
    ) -> None:
        self.module, self.plan, self.seed = module, plan, seed
        self.identity, self.group, self.request = identity, group, request
        self.directory = None if run_dir is None else Path(run_dir)
        self.device = next(module.parameters()).device
        self.shards = plan.shards or group.world
        if self.shards % group.world:
            raise TrainingError(
                f"shards={self.shards} cannot be dealt out evenly to {group.world} ranks"
            )
        self.optimizer = make_optimizer(
            plan.optimizer, module.parameters(), plan.lr, plan.weight_decay
        )
        self.average = (
            None
            if plan.ema is None
            else AveragedModel(
                module, multi_avg_fn=get_ema_multi_avg_fn(plan.ema), use_buffers=True
            )
        )
        self.model: nn.Module = _ObjectiveModule(module, objective)
        if group.world > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model)
        path = None if self.directory is None else self.directory / "history.jsonl"
        self.history = History(path, writes=group.leads)
        self.step, self.loss_sum, self.loss_count, self.finished = 0, 0.0, 0, False
        self.wall, self.cpu = 0.0, 0.0
        self._restart_clocks()

    # --- time ---------------------------------------------------------------------------------

    def _restart_clocks(self) -> None:
        self._wall_start = time.perf_counter() - self.wall
        self._cpu_start = time.process_time() - self.cpu

    def _read_clocks(self) -> None:
        self.wall = time.perf_counter() - self._wall_start
        self.cpu = time.process_time() - self._cpu_start

    # --- checkpoints --------------------------------------------------------------------------

    def _fingerprint(self) -> dict[str, Any]:
        shapes = {name: list(part.shape) for name, part in self.module.state_dict().items()}
        own = {"shards": self.shards, "seed": self.seed, "shapes": shapes}
        # The address in a plain object's repr is another in every process.
        told = {name: re.sub(r" at 0x\w+", "", repr(v)) for name, v in self.identity.items()}
        return self.plan.fingerprint() | own | told

    def save(self) -> None:
        """Write the checkpoint; all ranks take part, the leading one writes."""
        if self.directory is None:
            return
        loss_sum = self.group.mean(self.loss_sum)
        if not self.group.leads:
            return
        save_checkpoint(
            self.directory / "checkpoint.pt",
            {
                "fingerprint": self._fingerprint(),
                "module": self.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "average": None if self.average is None else self.average.state_dict(),
                "progress": {
                    "step": self.step,
                    "finished": self.finished,
                    "loss_sum": loss_sum,
                    "loss_count": self.loss_count,
                    "wall": self.wall,
                    "cpu": self.cpu,
                },
            },
        )

    def resume(self) -> None:
        """Go back to the last checkpoint, if there is one."""
        if self.directory is None:
            return
        state = load_checkpoint(self.directory / "checkpoint.pt")
        if state is not None:
            self._refuse_another_run(state["fingerprint"])
            self.module.load_state_dict(state["module"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.average is not None:
                self.average.load_state_dict(state["average"])
            for name, value in state["progress"].items():
                setattr(self, name, value)
        self.history.rewind(self.step)
        self._restart_clocks()

    def _refuse_another_run(self, stored: dict[str, Any]) -> None:
        wanted = self._fingerprint()
        for name in wanted:
            if stored.get(name) != wanted[name]:
                told = "another network" if name == "shapes" else f"{name}={stored.get(name)}"
                instead = "" if name == "shapes" else f", not {wanted[name]}"
                raise TrainingError(
                    f"{self.directory} holds a run with {told}{instead}: resume with the same "
                    "settings or choose another directory"
                )

    # --- the loop -----------------------------------------------------------------------------

    def go(
        self, source: Source, bar: "tqdm[Any]", should_stop: Callable[[list[Record]], bool] | None
    ) -> None:
        """Work through the remaining steps."""
        plan = self.plan
        per_rank = self.shards // self.group.world
        mine = Indices(self.step, plan.steps, self.shards, self.group.rank * per_rank, per_rank)
        batches, indices = stream(source, mine, plan.workers), iter(mine)
        saved_at = self.wall
        self.finished = self.finished or self.step >= plan.steps
        self.module.train()
        while not self.finished:
            self._read_clocks()
            stop, elapsed = self.group.largest(float(self.request.received), self.wall)
            if stop:
                self.save()
                self.request.obey(self.step, self.directory)
            progress = elapsed / plan.max_seconds if plan.max_seconds else self.step / plan.steps
            if progress >= 1:
                break
            self._set_rate(progress)
            self._one_step(batches, indices, per_rank)
            bar.update()
            self.finished = self.step >= plan.steps
            if self.step % plan.log_every == 0 or self.finished:
                self._log(bar)
                wish = should_stop is not None and should_stop(self.history.records)
                self.finished = bool(self.group.largest(float(wish or self.finished))[0])
            due = elapsed - saved_at >= plan.checkpoint_seconds or (
                plan.checkpoint_steps is not None and self.step % plan.checkpoint_steps == 0
            )
            if due and not self.finished:
                self.save()
                saved_at = elapsed
        self._read_clocks()
        if self.loss_count:
            self._log(bar)
        self.save()
        if self.average is not None:
            self.module.load_state_dict(self.average.module.state_dict())
        self.module.eval()

    def _set_rate(self, progress: float) -> None:
        factor = rate_factor(self.plan.schedule, progress, self.plan.warmup, self.plan.drop_at)
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.lr * factor

    def _one_step(self, batches: Iterator[Any], indices: Iterator[int], per_rank: int) -> None:
        """Accumulate the gradient over this rank's shards, then move the weights."""
        self.optimizer.zero_grad(set_to_none=True)
        for turn in range(per_rank):
            # Gradients are exchanged once a step, with the last shard.
            waits = self.group.world > 1 and turn < per_rank - 1
            with self.model.no_sync() if waits else nullcontext():  # type: ignore[operator]
                batch = move(next(batches), self.device)
                seed_generators(derive_seed(NOISE, self.seed, next(indices)), self.device)
                loss = self.model(batch) / per_rank
                loss.backward()
            self.loss_sum += float(loss.detach())
        limit = math.inf if self.plan.clip is None else self.plan.clip
        norm = float(nn.utils.clip_grad_norm_(self.module.parameters(), limit))
        # Before the weights are touched, so that the last checkpoint stays good. All ranks have the
        # same gradient, and agree.
        self._refuse_if_not_finite(norm, "gradient")
        self.optimizer.step()
        if self.average is not None:
            self.average.update_parameters(self.module)
        self.step += 1
        self.loss_count += 1

    def _refuse_if_not_finite(self, value: float, what: str) -> None:
        if not math.isfinite(value):
            raise TrainingError(
                f"the {what} is no longer finite ({value}) at step {self.step + 1}: lower "
                f"lr={self.plan.lr}, set clip, or rescale the data"
            )

    def _log(self, bar: "tqdm[Any]") -> None:
        self._read_clocks()
        loss = self.group.mean(self.loss_sum / max(self.loss_count, 1))
        self._refuse_if_not_finite(loss, "loss")
        self.loss_sum, self.loss_count = 0.0, 0
        record = {
            "step": self.step,
            "loss": loss,
            "lr": self.optimizer.param_groups[0]["lr"],
            "seconds": round(self.wall, 3),
            "cpu_seconds": round(self.cpu, 3),
        }
        self.history.append(record)
        bar.set_postfix(loss=f"{loss:.4f}")
