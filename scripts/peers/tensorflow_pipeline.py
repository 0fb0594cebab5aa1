"""tensorflow_pipeline.py read FOLDER: TensorFlow's side of pipeline.py, which describes the conversation."""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras

data = keras.utils.image_dataset_from_directory(sys.argv[2], image_size=(180, 180), batch_size=32, seed=1, verbose=False)
for _ in sys.stdin:
    start, processor, images = time.perf_counter(), time.process_time(), 0
    for x, _ in data:
        images += x.shape[0]
    print("window %d %.6f %.6f" % (images, time.perf_counter() - start, time.process_time() - processor), flush=True)
