"""Cases of layers that pass their input on in inference, or scale it, and of what makes one vector of a sequence."""
from .basics import SEQUENCE, plain

FIRST_SEED = 97200

CASES = [
    plain("Identity"),
    plain("Dropout", "in inference", rate=0.5),
    plain("Masking", shapes=[SEQUENCE]),
    plain("Masking", "of another value", shapes=[SEQUENCE], mask_value=0.5),
    plain("ActivityRegularization", l1=0.1, l2=0.2),
    plain("LayerScale", init_values=0.1, projection_dim=4),
    plain("GlobalAveragePooling1D", shapes=[SEQUENCE]),
    plain("GlobalAveragePooling1D", "keepdims", shapes=[SEQUENCE], keepdims=True),
    plain("GlobalMaxPooling1D", shapes=[SEQUENCE]),
    plain("GlobalMaxPooling1D", "keepdims", shapes=[SEQUENCE], keepdims=True),
]
