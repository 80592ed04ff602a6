"""Image sets of handwritten characters never seen before: DAC beside methods on an embedding.

    ASTERISM_DATA=... python benchmarks/omniglot.py --train OUT --steps 8000
    ASTERISM_DATA=... python benchmarks/omniglot.py --weights OUT [--batches 100]

Data        Omniglot, background small 1: 136 characters by 20 hands, 28 × 28. The characters are
            split at random: 70 % to learn from, 30 % for the test alone.
Training    every training character turned by quarters and mirrored, which makes eight classes of
            it, and each image in five versions: itself, and four turned by up to 10°, scaled by up
            to 10 % and moved by up to two pixels. DAC with convolutional encoder and without
            densities, sets of 30 … 99 images of at most 4 classes.
            The autoencoder of ``AEKMeans``, as it comes (10 codes), learns from the same images;
            its own k-means is not used. ``--train`` writes OUT and OUT-ae.
Benchmarks  ``image-filtering`` (K ≤ 4, N < 100) and ``image-clustering`` (K ≤ 12, N < 300), 100
            batches of ten data sets. Clusters often ask for more than the 20 images of a character,
            which then come again; "each once" leaves the repeats out. "training" are characters
            learnt from, in their original versions: what is lost on new ones can be seen there.
Classical   on the codes: k-means, K of 2 … 12 by the silhouette; HDBSCAN with noise given to the
            nearest cluster.

    columns     ARI mean ± standard error; below 0.9: share of data sets whose ARI is; CPU s a data
                set, one thread, encoding included

Scores are kept batch by batch, so that a run may be broken off and started again; so may training.
"""

import argparse
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from amortised import (
    Answer,
    Contestant,
    Each,
    by_count,
    draw_by_count,
    judge_batches,
    load_network,
    network_facts,
    score_row,
    short_name,
    without_empty,
)
from common import ROOT, Row, markdown_tables, write_results
from scipy.ndimage import affine_transform
from threadpoolctl import threadpool_limits

from asterism import DAC, HDBSCAN, AEKMeans, AutoKMeans
from asterism.datasets import load_omniglot
from asterism.functional.sets import SetBatch
from asterism.io import find_weights, read_card
from asterism.priors import ImageSetPrior, benchmark_batches, split_classes
from asterism.training import TrainingPlan

SEED, BATCHES, TEST_SHARE = 0, 100, 0.3
SEEN, MAX_CLUSTERS, SIDE = 4, 12, 28
COPIES, TURN, SCALING, SHIFT = 4, 10.0, 0.1, 2.0
PARTS = (("unseen", "as drawn"), ("unseen", "each once"), ("training", "each once"))
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()


# --- images -------------------------------------------------------------------------------------


@cache
def characters() -> tuple[np.ndarray, np.ndarray, dict[str, tuple]]:
    """Images (n, 28, 28) in [0, 1], their characters, and those of each part."""
    data = load_omniglot()
    training, unseen = split_classes(data.y, test_share=TEST_SHARE, seed=SEED)
    return data.X.reshape(-1, SIDE, SIDE), data.y, {"training": training, "unseen": unseen}


def training_images() -> tuple[np.ndarray, np.ndarray]:
    """Versions of the training characters as bytes (n, 784), and their classes."""
    images, labels, parts = characters()
    own = np.isin(labels, parts["training"])
    images, labels = images[own], labels[own]
    chance = np.random.default_rng(SEED)
    versions = [images, *(np.stack([jitter(x, chance) for x in images]) for _ in range(COPIES))]
    seen = np.concatenate(versions)
    turned = [np.rot90(seen, k, axes=(1, 2)) for k in range(4)]
    turned += [side[:, :, ::-1] for side in turned]
    classes = [8 * np.tile(labels, len(versions)) + k for k in range(8)]
    return to_bytes(np.concatenate(turned)), np.concatenate(classes)


def jitter(image: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """The image turned, scaled and moved a little about its middle."""
    angle = np.deg2rad(chance.uniform(-TURN, TURN))
    factor = 1 + chance.uniform(-SCALING, SCALING)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / factor
    middle = np.full(2, (SIDE - 1) / 2)
    offset = middle - turn @ (middle + chance.uniform(-SHIFT, SHIFT, size=2))
    return affine_transform(image, turn, offset, order=1)


def to_bytes(images: np.ndarray) -> np.ndarray:
    return np.rint(255 * np.clip(images, 0, 1)).astype(np.uint8).reshape(len(images), -1)


# --- training -----------------------------------------------------------------------------------


def train(out: str, steps: int, loss: str, width: int, ae_steps: int) -> None:
    """Write the weights of DAC to OUT, and the autoencoder to OUT-ae."""
    images, labels = training_images()
    command = shlex.join(["python", "benchmarks/omniglot.py", *sys.argv[1:]])
    if not Path(f"{out}-ae.safetensors").exists():  # or an earlier run has got so far
        encoder = AEKMeans(2, n_init=1, max_steps=ae_steps, random_state=SEED, verbose=True)
        encoder.fit(images.astype(np.float32) / 255).save(f"{out}-ae", command=command)
    plan = TrainingPlan(
        steps=steps,
        lr=1e-3,
        optimizer="muon",
        schedule="cosine",
        warmup=0.02,
        clip=10.0,
        ema=0.999,
    )
    prior = ImageSetPrior(images, labels, max_clusters=SEEN, n_points=(30, 99))
    model = DAC(random_state=SEED, device="cpu", verbose=True).pretrain(
        prior,
        plan=plan,
        batch_size=10,
        run_dir=f"{out}-run",
        encoder="conv",
        density="none",
        loss=loss,
        width=width,
    )
    model.save(out, command=command, data="omniglot, background small 1", split_seed=SEED)


# --- test ---------------------------------------------------------------------------------------


def contestants(weights: list[str], autoencoder: str, n_batches: int) -> list[Contestant]:
    encoder = AEKMeans.load(autoencoder, device="cpu")
    code = {"autoencoder": read_card(find_weights(autoencoder))["sha256"][:12]}

    def on_codes(method: Any) -> Each:
        return Each(lambda X: Answer(method.fit_predict(encoder.transform(X))))

    made = []
    for file in weights:
        model = load_network(file)
        name = f"DAC {model.architecture_.get('loss', 'min')} `{short_name(file)}`"
        made.append(Contestant(name, model, False, n_batches, network_facts(file)))
    kmeans = AutoKMeans(max_clusters=MAX_CLUSTERS, random_state=SEED)
    made.append(Contestant("k-means, silhouette", on_codes(kmeans), False, n_batches, code))
    made.append(Contestant("HDBSCAN", on_codes(HDBSCAN(noise="fill")), False, n_batches, code))
    return made


def batches(benchmark: str, classes: str, images: str, n_batches: int) -> Iterator[SetBatch]:
    pixels, labels, parts = characters()
    prior = ImageSetPrior(pixels, labels, classes=parts[classes])
    drawn = benchmark_batches(benchmark, prior, seed=SEED, n_batches=n_batches)
    return drawn if images == "as drawn" else map(each_once, drawn)


def each_once(batch: SetBatch) -> SetBatch:
    """The same data sets without images that came before."""
    keep = torch.zeros_like(batch.keep)
    for own, x in zip(keep, batch.x.numpy(), strict=True):
        own[torch.from_numpy(np.unique(x, axis=0, return_index=True)[1])] = True
    return replace(batch, keep=keep & batch.keep)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", metavar="OUT", help="train, write weights there, and end")
    parser.add_argument("--steps", type=int, default=8000, help="of training DAC")
    parser.add_argument("--loss", choices=["min", "anchored"], default="min")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--ae-steps", type=int, default=3000)
    parser.add_argument("--weights", nargs="+", default=["dac-omniglot"], help="names or files")
    parser.add_argument("--autoencoder", help="its file; the first weights' with -ae by default")
    parser.add_argument("--batches", type=int, default=BATCHES, help="of ten data sets")
    parser.add_argument("--quick", action="store_true", help="print; nothing is written")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if asked.train:
        train(asked.train, asked.steps, asked.loss, asked.width, asked.ae_steps)
        return
    autoencoder = asked.autoencoder or f"{asked.weights[0].removesuffix('.safetensors')}-ae"
    methods = contestants(asked.weights, autoencoder, asked.batches)
    tables: dict[str, list[Row]] = {}
    panels = {}
    for benchmark in ("image-clustering", "image-filtering"):
        for classes, images in PARTS:
            facts = {"benchmark": benchmark, "classes": classes, "images": images, "seed": SEED}
            drawn = batches(benchmark, classes, images, asked.batches)
            with threadpool_limits(1):
                found = judge_batches("omniglot", facts, methods, drawn)
            title = f"{benchmark}, {classes} characters, {images}"
            tables[title] = without_empty([score_row(name, sets) for name, sets in found.items()])
            if (classes, images) == ("unseen", "each once"):
                panels[title] = {name: by_count(sets) for name, sets in found.items()}
    folder = ROOT / "runs" / "quick" if asked.quick else ROOT / "docs" / "images"
    draw_by_count(folder / "omniglot.png", panels, SEEN)
    if asked.quick:
        print(markdown_tables(tables))
        return
    _, _, parts = characters()
    write_results(
        "omniglot",
        "Characters never seen before",
        f"```text\n{PROTOCOL}\n```",
        tables,
        seed=SEED,
        characters={name: len(classes) for name, classes in parts.items()},
        networks={short_name(file): network_facts(file) for file in asked.weights},
        autoencoder=read_card(find_weights(autoencoder))["sha256"],
    )


if __name__ == "__main__":
    main()
