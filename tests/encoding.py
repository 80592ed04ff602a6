"""Tables as text and through the encoder, for tests."""

import io
import json

import pandas as pd

from asterism.io.encoder import TableEncoder


def through_json(encoder):
    return TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))


def encode(columns, **options):
    return TableEncoder(**options).fit_transform(pd.DataFrame(columns))


def text(content):
    """A stream of the text or the bytes."""
    return io.BytesIO(content.encode() if isinstance(content, str) else content)
