"""parameters.py: the parameters of Keras' functions, whose names and defaults spec/golden/parameters_spec.lua looks for.

    python spec/golden/parameters.py      writes spec/golden/parameters.lua, and parameters_of_classes.lua of the modules of classes
"""
import inspect
import os
import re
import textwrap

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras

FUNCTIONS = ["ops", "ops.image", "ops.linalg", "ops.nn", "random", "utils", "activations", "applications", "backend", "config",
             "distribution", "models", "preprocessing", "preprocessing.image", "preprocessing.sequence", "saving", "tree"]
CLASSES = ["layers", "losses", "metrics", "callbacks", "optimizers", "optimizers.schedules", "initializers", "regularizers", "constraints"]
HERE = os.path.dirname(os.path.abspath(__file__))


def default_of(parameter):
    """"=0.5", of numbers, booleans and plain strings; "" of others, and without one."""
    value = parameter.default
    if isinstance(value, (bool, int, float)):
        return f"={str(value).lower()}"
    return f"={value}" if isinstance(value, str) and re.fullmatch(r"[\w.-]+", value) else ""


def names_of(found):
    try:
        parameters = inspect.signature(found.__init__ if inspect.isclass(found) else found).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name + default_of(p) for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]


def write(file_name, what, modules):
    lines = [f"-- {file_name}: the parameters of Keras {keras.__version__}'s {what}. Made by parameters.py.", "return {"]
    for path in modules:
        module = keras
        for part in path.split("."):
            module = getattr(module, part)
        lines.append(f'  ["{path}"] = [[')
        texts = []
        for name in sorted(dir(module)):
            found = getattr(module, name)
            parameters = names_of(found) if callable(found) and not name.startswith("_") else []
            if parameters:
                texts.append(f"{name}: {' '.join(parameters)};")
        lines += textwrap.wrap(" ".join(texts), 136, break_on_hyphens=False, initial_indent="    ", subsequent_indent="    ")
        lines.append("  ]],")
    with open(os.path.join(HERE, file_name), "w") as file:
        file.write("\n".join(lines + ["}", ""]))


write("parameters.lua", "functions", FUNCTIONS)
write("parameters_of_classes.lua", "classes", CLASSES)
