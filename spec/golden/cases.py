"""The cases but those of layers: what is compared. Names and options are Keras' own."""


def loss(name, kind, shape, value_range, **more):
    return {"name": kind + " " + name, "loss": kind, "shape": shape, "range": value_range} | more


LOGITS, PROBABILITIES = (-3.0, 3.0), (0.02, 0.98)
LOSSES = [
    loss("logits", "SparseCategoricalCrossentropy", [6, 5], LOGITS, classes=5, options={"from_logits": True}),
    loss("large logits", "SparseCategoricalCrossentropy", [6, 5], (-200.0, 200.0), classes=5, options={"from_logits": True}),
    loss("probabilities", "SparseCategoricalCrossentropy", [6, 5], PROBABILITIES, classes=5),
    loss("logits of rank 3", "SparseCategoricalCrossentropy", [2, 3, 4], LOGITS, classes=4, options={"from_logits": True}),
    loss("logits", "CategoricalCrossentropy", [6, 5], LOGITS, options={"from_logits": True}),
    loss("probabilities", "CategoricalCrossentropy", [6, 5], PROBABILITIES),
    loss("logits", "BinaryCrossentropy", [6, 2], LOGITS, options={"from_logits": True}),
    loss("probabilities", "BinaryCrossentropy", [6, 2], PROBABILITIES),
    loss("", "MeanSquaredError", [6, 5], (-1.0, 1.0)),
    loss("", "MeanAbsoluteError", [6, 5], (-1.0, 1.0)),
    loss("", "Huber", [6, 5], (-3.0, 3.0)),
]
for case in LOSSES:
    case["name"] = case["name"].strip()

METRICS = [
    {"name": "labels", "shape": [40, 5], "range": LOGITS, "classes": 5, "loss": "SparseCategoricalCrossentropy",
     "options": {"from_logits": True}, "metrics": ["accuracy"]},
    {"name": "labels {n, 1}", "shape": [40, 5], "true_shape": [40, 1], "range": LOGITS, "classes": 5,
     "loss": "SparseCategoricalCrossentropy", "options": {"from_logits": True}, "metrics": ["sparse_categorical_accuracy"]},
    {"name": "binary", "shape": [40, 1], "true_shape": [40, 1], "range": (0.0, 1.0), "classes": 2, "loss": "MeanSquaredError",
     "metrics": ["accuracy"]},
]

OPTIMIZERS = [
    {"name": "SGD", "optimizer": "SGD", "options": {"learning_rate": 0.1}, "steps": 3},
    {"name": "SGD momentum", "optimizer": "SGD", "options": {"learning_rate": 0.1, "momentum": 0.9}, "steps": 6},
    {"name": "SGD Nesterov", "optimizer": "SGD", "options": {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}, "steps": 6},
    {"name": "Adam", "optimizer": "Adam", "options": {}, "steps": 6},
    {"name": "Adam, other numbers", "optimizer": "Adam",
     "options": {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 0.001}, "steps": 6},
    {"name": "Adam amsgrad", "optimizer": "Adam", "options": {"learning_rate": 0.05, "beta_2": 0.6, "amsgrad": True}, "steps": 8},
]


def optimizer(kind, name="", schedule=None, exclude=None, shapes=([7], [3, 4]), **options):
    """schedule: [class, options] of the learning rate. exclude: index of a variable without weight decay. shapes: of the variables."""
    return {"name": (kind + " " + name).strip(), "optimizer": kind, "options": options, "steps": 10, "schedule": schedule,
            "exclude": exclude, "shapes": shapes}


DECAYING = ["ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.5}]
TENSORS = ([7], [3, 4], [5, 2], [2, 2, 3, 4], [])
OPTIMIZERS += [
    optimizer("RMSprop"),
    optimizer("RMSprop", "other numbers", learning_rate=0.03, rho=0.7, epsilon=0.001),
    optimizer("RMSprop", "momentum", learning_rate=0.01, momentum=0.8),
    optimizer("RMSprop", "centered", learning_rate=0.01, centered=True),
    optimizer("RMSprop", "momentum, centered", learning_rate=0.01, momentum=0.8, centered=True, rho=0.8),
    optimizer("AdamW"),
    optimizer("AdamW", "other numbers", learning_rate=0.05, weight_decay=0.2, amsgrad=True),
    optimizer("AdamW", "without decay of one variable", learning_rate=0.05, weight_decay=0.2, exclude=1),
    optimizer("Adagrad"),
    optimizer("Adagrad", "other numbers", learning_rate=0.1, initial_accumulator_value=0.5, epsilon=0.01),
    optimizer("Adadelta", learning_rate=1.0),
    optimizer("Adadelta", "other numbers", learning_rate=0.5, rho=0.8, epsilon=0.01),
    optimizer("Adamax"),
    optimizer("Adamax", "other numbers", learning_rate=0.05, beta_1=0.8, beta_2=0.9, epsilon=0.01),
    optimizer("SGD", "weight_decay", learning_rate=0.1, weight_decay=0.1),
    optimizer("SGD", "momentum, weight_decay", learning_rate=0.1, momentum=0.9, weight_decay=0.1),
    optimizer("RMSprop", "weight_decay", learning_rate=0.01, weight_decay=0.1),
    optimizer("SGD", "clipnorm", learning_rate=0.1, clipnorm=1.6),
    optimizer("SGD", "clipvalue", learning_rate=0.1, clipvalue=0.3),
    optimizer("SGD", "global_clipnorm", learning_rate=0.1, global_clipnorm=2.4),
    optimizer("Adam", "global_clipnorm", learning_rate=0.01, global_clipnorm=0.5),
    optimizer("SGD", "loss_scale_factor, clipnorm", learning_rate=0.1, loss_scale_factor=3.0, clipnorm=0.4),
    optimizer("SGD", "ExponentialDecay", ["ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.5}]),
    optimizer("Adam", "CosineDecay with warmup", ["CosineDecay", {"initial_learning_rate": 0.01, "decay_steps": 5, "alpha": 0.1,
                                                               "warmup_target": 0.1, "warmup_steps": 3}]),
    optimizer("AdamW", "PiecewiseConstantDecay", ["PiecewiseConstantDecay", {"boundaries": [2, 6], "values": [0.1, 0.05, 0.01]}],
              weight_decay=0.1),
    optimizer("Lion"),
    optimizer("Lion", "other numbers", learning_rate=0.05, beta_1=0.7, beta_2=0.8),
    optimizer("Lion", "without decay of one variable", learning_rate=0.05, weight_decay=0.2, exclude=1),
    optimizer("Lion", "ExponentialDecay, clipnorm",
              ["ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.5}], clipnorm=0.4),
    optimizer("Nadam"),
    optimizer("Nadam", "other numbers", learning_rate=0.05, beta_1=0.7, beta_2=0.9, epsilon=0.01),
    optimizer("Nadam", "weight_decay, global_clipnorm", learning_rate=0.05, weight_decay=0.2, exclude=1, global_clipnorm=0.5),
    optimizer("SGD", "use_ema", learning_rate=0.1, momentum=0.9, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=5),
    optimizer("Adam", "use_ema", learning_rate=0.05, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3, weight_decay=0.1),
    optimizer("Nadam", "use_ema", learning_rate=0.02, use_ema=True, ema_overwrite_frequency=1),
    optimizer("Lion", "use_ema", learning_rate=0.05, use_ema=True, ema_momentum=0.9),
    optimizer("SGD", "gradient_accumulation_steps", learning_rate=0.1, momentum=0.9, gradient_accumulation_steps=3),
    optimizer("Adam", "gradient_accumulation_steps, clipnorm, weight_decay", learning_rate=0.05, clipnorm=0.4, weight_decay=0.1,
              gradient_accumulation_steps=2),
    optimizer("AdamW", "gradient_accumulation_steps, global_clipnorm, ExponentialDecay",
              ["ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.5}], global_clipnorm=0.5,
              gradient_accumulation_steps=4),
    optimizer("Nadam", "gradient_accumulation_steps, use_ema", learning_rate=0.02, use_ema=True, ema_momentum=0.7,
              ema_overwrite_frequency=2, gradient_accumulation_steps=2),
    optimizer("Lion", "gradient_accumulation_steps, loss_scale_factor, clipvalue", learning_rate=0.05, loss_scale_factor=3.0,
              clipvalue=0.1, gradient_accumulation_steps=3),
    optimizer("Ftrl"),
    optimizer("Ftrl", "other numbers", learning_rate=0.1, learning_rate_power=-0.7, initial_accumulator_value=0.4,
              l1_regularization_strength=0.2, l2_regularization_strength=0.3, l2_shrinkage_regularization_strength=0.1, beta=0.5),
    optimizer("Ftrl", "weight_decay, clipnorm, ExponentialDecay", DECAYING, learning_rate_power=0.0, weight_decay=0.1, exclude=0,
              clipnorm=0.4),
    optimizer("Ftrl", "use_ema, gradient_accumulation_steps", learning_rate=0.2, use_ema=True, ema_momentum=0.6,
              ema_overwrite_frequency=2, gradient_accumulation_steps=2),
    optimizer("Lamb"),
    optimizer("Lamb", "other numbers, weight_decay", learning_rate=0.05, beta_1=0.8, beta_2=0.95, epsilon=0.01, weight_decay=0.2,
              exclude=0),
    optimizer("Lamb", "ExponentialDecay, global_clipnorm, gradient_accumulation_steps", DECAYING, global_clipnorm=0.5,
              gradient_accumulation_steps=3),
    optimizer("Lamb", "use_ema, clipvalue", learning_rate=0.02, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=3, clipvalue=0.2),
    optimizer("Adafactor", shapes=TENSORS),
    optimizer("Adafactor", "other numbers, weight_decay", learning_rate=0.2, beta_2_decay=-0.5, epsilon_1=1e-3, epsilon_2=0.1,
              clip_threshold=0.5, relative_step=False, weight_decay=0.1, exclude=1, shapes=TENSORS),
    optimizer("Adafactor", "ExponentialDecay, clipnorm, gradient_accumulation_steps", DECAYING, clipnorm=0.5,
              gradient_accumulation_steps=2),
    optimizer("Adafactor", "use_ema", learning_rate=0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=4),
    optimizer("Muon", shapes=TENSORS),
    optimizer("Muon", "other numbers", learning_rate=0.05, adam_beta_1=0.8, adam_beta_2=0.9, adam_weight_decay=0.3, epsilon=0.01,
              weight_decay=0.1, muon_a=3.0, muon_b=-4.0, muon_c=1.8, adam_lr_ratio=0.5, momentum=0.8, ns_steps=3, nesterov=False,
              rms_rate=0.5, shapes=TENSORS),
    optimizer("Muon", "clipnorm, gradient_accumulation_steps", learning_rate=0.02, clipnorm=0.5, gradient_accumulation_steps=2,
              exclude=1),
    optimizer("Muon", "use_ema, global_clipnorm", learning_rate=0.02, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=3,
              global_clipnorm=0.6),
]

SCHEDULES = [
    ["ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.5}],
    ["ExponentialDecay", {"initial_learning_rate": 0.1, "decay_steps": 7, "decay_rate": 0.5, "staircase": True}],
    ["CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 30}],
    ["CosineDecay", {"initial_learning_rate": 0.1, "decay_steps": 30, "alpha": 0.2}],
    ["CosineDecay", {"initial_learning_rate": 0.0, "decay_steps": 30, "alpha": 0.1, "warmup_target": 0.2, "warmup_steps": 8}],
    ["PiecewiseConstantDecay", {"boundaries": [5, 11, 30], "values": [1.0, 0.5, 0.25, 0.1]}],
    ["PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 12}],
    ["PolynomialDecay", {"initial_learning_rate": 0.1, "decay_steps": 12, "end_learning_rate": 0.01, "power": 0.5, "cycle": True}],
    ["InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.5}],
    ["InverseTimeDecay", {"initial_learning_rate": 0.1, "decay_steps": 4, "decay_rate": 0.5, "staircase": True}],
    ["CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 6}],
    ["CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 6, "t_mul": 1.0, "m_mul": 0.8, "alpha": 0.1}],
    ["CosineDecayRestarts", {"initial_learning_rate": 0.1, "first_decay_steps": 5, "t_mul": 1.5, "m_mul": 0.5}],
]

SGD, ADAM = {"learning_rate": 0.05}, {"learning_rate": 0.001}
TRAINING = [
    {"name": "mnist, SGD", "net": "mnist", "size": 28, "optimizer": "SGD", "options": SGD, "from_logits": True,
     "batch": 32, "batches": 4, "steps": 20, "range": (0.0, 1.0)},
    {"name": "flowers 60, Adam", "net": "flowers", "size": 60, "optimizer": "Adam", "options": ADAM, "from_logits": False,
     "batch": 16, "batches": 2, "steps": 10, "range": (0.0, 256.0)},
    {"name": "flowers 180, Adam", "net": "flowers", "size": 180, "optimizer": "Adam", "options": {"learning_rate": 0.0001},
     "from_logits": False, "batch": 8, "batches": 2, "steps": 10, "range": (0.0, 256.0)},
    {"name": "residual, SGD momentum", "net": "residual", "size": 8, "optimizer": "SGD",
     "options": {"learning_rate": 0.05, "momentum": 0.9}, "from_logits": True,
     "batch": 16, "batches": 2, "steps": 5, "range": (-1.0, 1.0)},
    {"name": "residual, Adam", "net": "residual", "size": 8, "optimizer": "Adam", "options": ADAM, "from_logits": True,
     "batch": 16, "batches": 2, "steps": 5, "range": (-1.0, 1.0)},
    {"name": "odd shapes, SGD", "net": "odd", "size": 31, "optimizer": "SGD", "options": SGD, "from_logits": True,
     "batch": 5, "batches": 3, "steps": 9, "range": (-1.0, 1.0)},
]
