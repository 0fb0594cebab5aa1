"""Cases of layers: signals as pictures of their frequencies, and embeddings that go back."""
from .basics import plain

FIRST_SEED = 92500

SIGNALS, CHANNELS = [2, 120], [2, 60, 2]


def mel(name, **options):
    return plain("MelSpectrogram", name, shapes=[SIGNALS], float32=True, fft_length=32, sampling_rate=1000, num_mel_bins=6, **options)


def stft(mode, name="", **options):
    return plain("STFTSpectrogram", (mode + " " + name).strip(), shapes=[CHANNELS], mode=mode, frame_length=12, **options)

BACK = {"arguments": [0], "named": {}, "options": {"reverse": True}}

CASES = [
    mel("in decibels", sequence_stride=8),
    mel("of power", sequence_stride=10, power_to_db=False, mag_exp=1.0, min_freq=50.0, max_freq=400.0),
    mel("of short parts", sequence_stride=8, sequence_length=20, top_db=20.0, ref_power=2.0),
    stft("log"), stft("magnitude", fft_length=32), stft("psd", expand_dims=True), stft("real", window="hamming"),
    stft("imag", scaling="spectrum"), stft("stft", periodic=True, frame_step=5), stft("log", "same", padding="same"),
    {"name": "ReversibleEmbedding", "layer": "ReversibleEmbedding", "options": {"input_dim": 7, "output_dim": 4}, "inputs": [[3, 5]],
     "classes": 7, "float32": True},
    {"name": "ReversibleEmbedding back", "layer": "ReversibleEmbedding", "inputs": [[3, 5, 4]],
     "options": {"input_dim": 7, "output_dim": 4, "logit_soft_cap": 0.5}, "call": BACK},
    {"name": "ReversibleEmbedding back, not tied", "layer": "ReversibleEmbedding", "inputs": [[3, 4]],
     "options": {"input_dim": 7, "output_dim": 4, "tie_weights": False}, "call": BACK},
]
