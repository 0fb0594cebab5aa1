-- training.lua: what flow.help says of models, losses, metrics and optimizers: see reference/texts.lua for the form.
return [==[
flow.Sequential: A model of layers, one after the other.
  local model = flow.Sequential { layers.Input { 4 }, layers.Dense(8, { activation = "relu" }), layers.Dense(1) }
  print(model:count_params())      --> 49
flow.Model: A model of a graph of layers, from its inputs to its outputs; Model:extend makes classes of models of your own.
  local input = flow.Input { 4 }
  local model = flow.Model { inputs = input, outputs = layers.Dense(1)(input) }
  print(model:count_params())      --> 5
Model.extend: A class of models of your own: train_step, test_step, predict_step, compute_loss or metrics may be replaced.
  local Own = flow.Model:extend("Own")
  function Own:metrics() return {} end
flow.load_model: Opens a .keras file, a folder that holds model.keras, or a .h5 file of Keras 2.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):save("m.keras")
  print(flow.load_model("m.keras"):count_params())      --> 3
flow.models.model_from_json: The model, without weights, that to_json() described.
  local text = flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):to_json()
  print(flow.models.model_from_json(text):count_params())      --> 3
flow.models.clone_model: The same layers with new weights, compiled as the model was.
  print(flow.models.clone_model(flow.Sequential { layers.Input { 2 }, layers.Dense(1) }):count_params())      --> 3
flow.models.shared: A model of a file whose weights all Lua states of the process share; for prediction in servers.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):save("m.keras")
  print(flow.models.shared("m.keras"):predict(flow.ones { 1, 2 }).shape[1])      --> 1
flow.models.clear_session: Automatic names of layers count from the beginning again.
  flow.clear_session()
model:compile: Says how to train: optimizer, loss, metrics, by name or as objects.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { optimizer = "adam", loss = "mse", metrics = { "mae" } }
model:fit: Trains on tensors or a data set and returns a History.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse" }
  local history = model:fit(flow.ones { 8, 2 }, flow.ones { 8, 1 }, { epochs = 2, verbose = 0 })
  print(#history.history.loss)      --> 2
model:evaluate: The loss and the metrics of data, as a table.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  print(model:evaluate(flow.zeros { 8, 2 }, flow.ones { 8, 1 }, { verbose = 0 }).loss)      --> 1
model:predict: The outputs for data, as a tensor, or a list of them for several outputs.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  print(model:predict(flow.ones { 3, 2 }, { verbose = 0 }).shape[1])      --> 3
model:predict_on_batch: The outputs for one batch.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  print(model:predict_on_batch(flow.ones { 3, 2 }).shape[1])      --> 3
model:quantize: Predicts in int8 from now on, by the ranges of layers' inputs for a few batches; "int8", as in Keras, needs no data.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:quantize(flow.ones { 8, 2 })
  print(model:predict(flow.ones { 3, 2 }, { verbose = 0 }).shape[1])      --> 3
model:train_on_batch: One step of training on one batch; returns its loss and metrics.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  print(model:train_on_batch(flow.zeros { 3, 2 }, flow.ones { 3, 1 }).loss)      --> 1
model:test_on_batch: The loss and the metrics of one batch.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  print(model:test_on_batch(flow.zeros { 3, 2 }, flow.ones { 3, 1 }).loss)      --> 1
model:train_step: One step of training on a batch { x, y, sample_weight }; a class of models may define its own.
  local Own = flow.Model:extend("Own")
  function Own:train_step(data) return flow.Model.train_step(self, data) end
model:test_step: What evaluate does with a batch; a class of models may define its own.
  local Own = flow.Model:extend("Own")
  function Own:test_step(data) return flow.Model.test_step(self, data) end
model:predict_step: What predict does with a batch; a class of models may define its own.
  local Own = flow.Model:extend("Own")
  function Own:predict_step(data) return flow.Model.predict_step(self, data) end
model:compute_loss: The loss of a batch and its outputs, with what layers add.
  local Own = flow.Model:extend("Own")
  function Own:compute_loss(x, y, y_pred) return ((y - y_pred) ^ 2):mean() end
model:compute_metrics: Updates the metrics with a batch and returns them as a table.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse", metrics = { "mae" } }
  print(model:compute_metrics { y = flow.ones { 1, 1 }, y_pred = flow.zeros { 1, 1 } }.mae ~= nil)      --> true
model:get_metrics_result: The metrics as they are, as a table by name.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  print(type(model:get_metrics_result()))      --> table
model:reset_state: Sets what stateful layers of the model keep from batch to batch to zeros, as before a new sequence.
  local model = flow.Sequential { flow.Input({ 3, 4 }, { batch_size = 1 }), layers.GRU(2, { stateful = true }) }
  model:predict(flow.ones { 1, 3, 4 }, { verbose = 0 })
  model:reset_state()
  print(model.layers[1].states[1]:value():sum():item())      --> 0
model:reset_states: The same as reset_state.
  local model = flow.Sequential { flow.Input({ 3, 4 }, { batch_size = 1 }), layers.GRU(2, { stateful = true }) }
  model:predict(flow.ones { 1, 3, 4 }, { verbose = 0 })
  model:reset_states()
  print(model.layers[1].states[1]:value():sum():item())      --> 0
model:reset_metrics: Sets all metrics to where they began.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  model:reset_metrics()
model:summary: Prints the layers with their shapes and numbers of weights.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):summary()
model:summary_text: What summary() prints, as a text.
  print(#flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):summary_text() > 0)      --> true
model:save: Writes architecture, weights and optimizer as a .keras file, which Keras opens, too.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):save("m.keras")
model:save_weights: Writes the weights alone: .weights.h5 or .safetensors.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):save_weights("m.weights.h5")
model:load_weights: Reads weights that save_weights, save or Keras wrote.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:save_weights("m.weights.h5")
  model:load_weights("m.weights.h5")
model:export: Writes the prediction as an ONNX file, or a folder for serving.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):export("m.onnx")
model:to_json: The architecture as Keras' JSON.
  print(#flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):to_json() > 0)      --> true
model:get_layer: The layer of this name.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { name = "out" }) }
  print(model:get_layer("out").name)      --> out
model:add: Adds a layer at the end of a Sequential model.
  local model = flow.Sequential { layers.Input { 2 } }
  model:add(layers.Dense(1))
model:pop: Takes the last layer of a Sequential model away.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(3), layers.Dense(1) }
  model:pop()
model:plot: Writes the graph of layers as a .svg picture or a .dot file.
  flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):plot("m.svg")
model:close: Releases the model's memory at once.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:close()
flow.losses.Loss: The class that losses written in Lua extend: call(y_true, y_pred) gives values for each sample.
  local Own = flow.losses.Loss:extend("Own")
  function Own:call(y_true, y_pred) return ((y_true - y_pred) ^ 4):mean(-1) end
  print(Own()(flow.zeros { 1, 1 }, flow.ones { 1, 1 }):item())      --> 1
Loss.extend: A class of losses of your own: call(y_true, y_pred) gives values for each sample.
  local Own = flow.losses.Loss:extend("Own")
  function Own:call(y_true, y_pred) return ((y_true - y_pred) ^ 4):mean(-1) end
loss:call: The values for each sample; a loss of your own defines it.
  print(flow.losses.MeanSquaredError():call(flow.zeros { 1, 1 }, flow.ones { 1, 1 }))
flow.losses.get: The loss of a name, a function or an object.
  print(flow.losses.get("mse").name)      --> mean_squared_error
flow.losses.BinaryCrossentropy: -(y log p + (1 - y) log(1 - p)); from_logits: predictions are before the sigmoid.
flow.losses.CategoricalCrossentropy: -sum of y log p, labels as one-hot rows; from_logits: predictions are before the softmax.
flow.losses.SparseCategoricalCrossentropy: -log p[label], labels as whole numbers from 0; ignore_class: a label that does not count.
  local loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
  print(loss(flow.tensor { 0 }, flow.tensor { { 100, 0 } }):item())      --> 0
flow.losses.MeanSquaredError: Mean of (y_true - y_pred)^2.
flow.losses.MeanAbsoluteError: Mean of |y_true - y_pred|.
flow.losses.MeanAbsolutePercentageError: 100 times the mean of |y_true - y_pred| / |y_true|.
flow.losses.MeanSquaredLogarithmicError: Mean of (log(1 + y_true) - log(1 + y_pred))^2.
flow.losses.Huber: The half square of errors up to delta, and a line beyond it.
flow.losses.LogCosh: Mean of log(cosh(y_pred - y_true)).
flow.losses.KLDivergence: Sum of y_true log(y_true / y_pred).
flow.losses.Poisson: Mean of y_pred - y_true log y_pred.
flow.losses.CosineSimilarity: -(the cosine of the angle between y_true and y_pred): -1 where they agree.
flow.losses.Hinge: Mean of max(1 - y_true y_pred, 0); labels are -1 or 1.
flow.losses.SquaredHinge: Mean of max(1 - y_true y_pred, 0)^2; labels are -1 or 1.
flow.losses.CategoricalHinge: max(1 + largest wrong score - right score, 0).
flow.losses.Dice: 1 - 2 |A and B| / (|A| + |B|), for masks of pictures.
flow.losses.Tversky: 1 - both / (both + alpha y_true (1 - y_pred) + beta (1 - y_true) y_pred), sums over axes: Dice with weights.
flow.losses.BinaryFocalCrossentropy: Binary cross entropy times (1 - p of the true class)^gamma: what is right already counts less.
flow.losses.CategoricalFocalCrossentropy: Cross entropy times alpha (1 - p)^gamma.
flow.losses.CategoricalGeneralizedCrossEntropy: (1 - p[label]^q) / q, for labels of which some are wrong.
  print(flow.losses.CategoricalGeneralizedCrossEntropy(0.5)(flow.tensor { 1 }, flow.tensor { { 0, 1 } }):item())      --> 0
flow.losses.categorical_generalized_cross_entropy: The values for each sample: (1 - p[label]^q) / q.
  print(flow.losses.categorical_generalized_cross_entropy(flow.tensor { 1 }, flow.tensor { { 0, 1 } }):item())      --> 0
flow.losses.crossentropy: -sum of y log p, labels as one-hot rows or as numbers.
flow.losses.CTC: -log p of a sequence of labels, of logits {batch, steps, classes} that need not be aligned with it; label 0 is the blank.
  local loss = flow.losses.CTC()
  print(loss(flow.tensor { { 1, 2, 0 } }, flow.random.normal { 1, 6, 3 }):item() > 0)      --> true
flow.losses.ctc: The values for each sequence: -log p of its labels, which end where 0 stands.
  print(flow.losses.ctc(flow.tensor { { 1, 2, 0 } }, flow.random.normal { 1, 6, 3 }).shape[1])      --> 1
flow.losses.Circle: Of normalized embeddings of a batch: those of one label are to be near each other, others far.
  local loss = flow.losses.Circle { gamma = 10 }
  print(loss(flow.tensor { 0, 0, 1 }, flow.tensor { { 1, 0 }, { 0.8, 0.6 }, { 0, 1 } }):item() > 0)      --> true
flow.losses.circle: The values for each sample; ref_labels and ref_embeddings: what the samples are compared with in place of each other.
  print(flow.losses.circle(flow.tensor { 0, 0, 1 }, flow.tensor { { 1, 0 }, { 0.8, 0.6 }, { 0, 1 } }).shape[1])      --> 3
flow.losses.CLASS: A loss: SUMMARY
  local loss = flow.losses.CLASS()
  print(loss(flow.tensor { { 0, 1 } }, flow.tensor { { 0.2, 0.8 } }).rank)      --> 0
flow.losses.NAME: The values of the loss for each sample. SUMMARY
  print(flow.is_tensor(flow.losses.NAME(flow.tensor { { 0, 1 } }, flow.tensor { { 0.2, 0.8 } })))      --> true
flow.losses.sparse_categorical_crossentropy: The values for each sample: -log p[label].
  print(flow.losses.sparse_categorical_crossentropy(flow.tensor { 1 }, flow.tensor { { 0, 1 } }))
flow.metrics.Metric: The class that metrics written in Lua extend: update_state() and result() are yours to write.
  local Count = flow.metrics.Metric:extend("Count")
  function Count:init() self.n = self:add_variable { name = "n" } end
  function Count:update_state(y_true) self.n:assign_add(#y_true) end
  function Count:result() return self.n:value() end
  print(Count()(flow.ones { 3, 1 }):item())      --> 3
Metric.extend: A class of metrics of your own: init(), update_state() and result() are yours to write.
  local Own = flow.metrics.Metric:extend("Own")
metric:update_state: Takes a batch of labels and predictions into account.
  local accuracy = flow.metrics.BinaryAccuracy()
  accuracy:update_state(flow.tensor { { 1 } }, flow.tensor { { 0.9 } })
metric:result: The value over all that update_state() saw.
  local mean = flow.metrics.Mean()
  mean:update_state(flow.tensor { 1, 3 })
  print(mean:result())      --> 2
metric:reset_state: Sets the metric to where it began.
  flow.metrics.Mean():reset_state()
metric:add_variable: A variable of the metric's state; what replicas add to it counts together.
  local Own = flow.metrics.Metric:extend("Own")
  function Own:init() self.total = self:add_variable { name = "total" } end
  print(#Own().variables)      --> 1
metric:add_weight: The same as add_variable.
  local Own = flow.metrics.Metric:extend("Own")
  function Own:init() self.total = self:add_weight { name = "total" } end
metric:values: The values for each sample that a metric of means averages.
  print(flow.metrics.MeanSquaredError():values(flow.zeros { 1, 1 }, flow.ones { 1, 1 }))
flow.metrics.get: The metric of a name or an object.
  print(flow.metrics.get("mae").name)      --> mae
flow.metrics.Mean: The mean of all values.
  local mean = flow.metrics.Mean()
  print(mean(flow.tensor { 1, 2, 3 }))      --> 2
flow.metrics.Sum: The sum of all values.
  local sum = flow.metrics.Sum()
  print(sum(flow.tensor { 1, 2, 3 }))      --> 6
flow.metrics.Accuracy: The share of predictions that equal their labels.
flow.metrics.BinaryAccuracy: The share of predictions that are on the right side of threshold.
flow.metrics.CategoricalAccuracy: The share of rows whose largest prediction is at the 1 of the label.
flow.metrics.SparseCategoricalAccuracy: The share of rows whose largest prediction is at the label, a number from 0.
  print(flow.metrics.SparseCategoricalAccuracy()(flow.tensor { 1 }, flow.tensor { { 0.1, 0.9 } }))      --> 1
flow.metrics.TopKCategoricalAccuracy: The share of rows whose k largest predictions have the 1 of the label among them.
flow.metrics.SparseTopKCategoricalAccuracy: The share of rows with the label among the k largest; from_sorted_ids: in the first k classes.
  print(flow.metrics.SparseTopKCategoricalAccuracy(1)(flow.tensor { 1 }, flow.tensor { { 0.1, 0.9 } }))      --> 1
flow.metrics.SparseCategoricalCrossentropy: The mean of -log p[label].
  print(flow.metrics.SparseCategoricalCrossentropy()(flow.tensor { 1 }, flow.tensor { { 0.5, 0.5 } }) < 1)      --> true
flow.metrics.AUC: The area under the ROC or the precision-recall curve.
flow.metrics.Precision: True positives / all predicted positives.
flow.metrics.Recall: True positives / all real positives.
flow.metrics.F1Score: The harmonic mean of precision and recall.
flow.metrics.FBetaScore: The harmonic mean of precision and recall in which recall counts beta times.
flow.metrics.TruePositives: How many predictions are positive and right.
flow.metrics.TrueNegatives: How many predictions are negative and right.
flow.metrics.FalsePositives: How many predictions are positive and wrong.
flow.metrics.FalseNegatives: How many predictions are negative and wrong.
flow.metrics.RootMeanSquaredError: The square root of the mean of (y_true - y_pred)^2.
flow.metrics.LogCoshError: The mean of log(cosh(y_pred - y_true)).
flow.metrics.IoU: The mean intersection over union of some classes: true positives / (true positives + false positives + false negatives).
  local metric = flow.metrics.IoU(2, { 0, 1 })
  print(("%.3f"):format(metric({ 0, 0, 1, 1 }, { 0, 1, 0, 1 })))      --> 0.333
flow.metrics.MeanIoU: The mean intersection over union of all classes; labels are whole numbers, or scores where they are not sparse.
  local metric = flow.metrics.MeanIoU(2, { sparse_y_pred = false })
  print(("%.3f"):format(metric({ 0, 1 }, { { 0.9, 0.1 }, { 0.3, 0.7 } })))      --> 1.000
flow.metrics.BinaryIoU: The mean intersection over union of what is below a threshold and what is not.
  print(("%.3f"):format(flow.metrics.BinaryIoU()({ 0, 1, 0, 1 }, { 0.1, 0.2, 0.4, 0.7 })))      --> 0.583
flow.metrics.OneHotIoU: The intersection over union of some classes, of one-hot labels and scores.
  print(("%.3f"):format(flow.metrics.OneHotIoU(2, { 1 })({ { 0, 1 }, { 1, 0 } }, { { 0.2, 0.8 }, { 0.6, 0.4 } })))      --> 1.000
flow.metrics.OneHotMeanIoU: The mean intersection over union of all classes, of one-hot labels and scores.
  print(("%.3f"):format(flow.metrics.OneHotMeanIoU(2)({ { 0, 1 }, { 1, 0 } }, { { 0.2, 0.8 }, { 0.6, 0.4 } })))      --> 1.000
flow.metrics.R2Score: The share of the variance of y_true that y_pred explains; class_aggregation = false gives a list, one for each output.
  print(("%.3f"):format(flow.metrics.R2Score()({ { 1 }, { 4 }, { 3 } }, { { 2 }, { 4 }, { 4 } })))      --> 0.571
flow.metrics.PearsonCorrelation: The mean correlation of y_true and y_pred along an axis.
flow.metrics.ConcordanceCorrelation: How near y_pred is to y_true along an axis: their correlation, less where means or variances differ.
flow.metrics.pearson_correlation: The correlation of the values of each sample.
flow.metrics.concordance_correlation: The concordance of the values of each sample.
flow.metrics.SensitivityAtSpecificity: The largest sensitivity among thresholds at which the specificity is at least a number.
  print(flow.metrics.SensitivityAtSpecificity(0.5)({ 0, 0, 0, 1, 1 }, { 0, 0.3, 0.8, 0.3, 0.8 }))      --> 0.5
flow.metrics.SpecificityAtSensitivity: The largest specificity among thresholds at which the sensitivity is at least a number.
  print(flow.metrics.SpecificityAtSensitivity(0.5)({ 0, 0, 1, 1 }, { 0, 0.3, 0.2, 0.8 }))      --> 1
flow.metrics.PrecisionAtRecall: The largest precision among thresholds at which the recall is at least a number.
  print(flow.metrics.PrecisionAtRecall(0.5)({ 0, 0, 1, 1 }, { 0, 0.3, 0.2, 0.8 }))      --> 1
flow.metrics.RecallAtPrecision: The largest recall among thresholds at which the precision is at least a number.
  print(flow.metrics.RecallAtPrecision(0.8)({ 0, 0, 1, 1 }, { 0, 0.3, 0.2, 0.8 }))      --> 0.5
flow.metrics.MeanMetricWrapper: The mean of what a function of y_true and y_pred gives for each sample.
  local off = flow.metrics.MeanMetricWrapper(function(y_true, y_pred) return (y_true - y_pred):abs() end, "off")
  print(off({ 1, 2 }, { 2, 4 }))      --> 1.5
flow.metrics.CLASS: A metric: SUMMARY
  local metric = flow.metrics.CLASS()
  metric:update_state(flow.tensor { { 0, 1 } }, flow.tensor { { 0.2, 0.8 } })
  print(metric:result() ~= nil)      --> true
flow.metrics.NAME: The values of the metric for each sample. SUMMARY
  print(flow.is_tensor(flow.metrics.NAME(flow.tensor { { 0, 1 } }, flow.tensor { { 0.2, 0.8 } })))      --> true
flow.metrics.CategoricalGeneralizedCrossEntropy: The mean of (1 - p[label]^q) / q.
  local metric = flow.metrics.CategoricalGeneralizedCrossEntropy()
  metric:update_state(flow.tensor { 1 }, flow.tensor { { 0, 1 } })
flow.metrics.categorical_generalized_cross_entropy: The values for each sample: (1 - p[label]^q) / q.
  print(flow.metrics.categorical_generalized_cross_entropy(flow.tensor { 1 }, flow.tensor { { 0, 1 } }))
flow.metrics.sparse_categorical_crossentropy: The values for each sample: -log p[label].
  print(flow.metrics.sparse_categorical_crossentropy(flow.tensor { 1 }, flow.tensor { { 0, 1 } }))
flow.metrics.sparse_categorical_accuracy: 1 for each row whose largest prediction is at the label, else 0.
  print(flow.metrics.sparse_categorical_accuracy(flow.tensor { 1 }, flow.tensor { { 0, 1 } }))
flow.metrics.sparse_top_k_categorical_accuracy: 1 for each row whose 5 largest predictions have the label among them, else 0.
  print(flow.metrics.sparse_top_k_categorical_accuracy(flow.tensor { 1 }, flow.tensor { { 0, 1 } }))
flow.optimizers.SGD: w = w - learning_rate g, with momentum if it is given.
flow.optimizers.Adam: Steps in the direction of the mean gradient, divided by the root of its mean square.
flow.optimizers.AdamW: Adam whose weights also shrink by weight_decay in each step.
flow.optimizers.Adamax: Adam that divides by the largest gradient seen of late.
flow.optimizers.Nadam: Adam with Nesterov's momentum.
flow.optimizers.RMSprop: Gradients divided by the root of their mean square.
flow.optimizers.Adagrad: Gradients divided by the root of the sum of all their squares.
flow.optimizers.Adadelta: Gradients divided by the root of their mean square, times that of the steps.
flow.optimizers.Lion: Steps of one size in the direction of the sign of the mean gradient.
flow.optimizers.Ftrl: Follow the regularized leader: weights whose gradients are few become exactly 0, with l1_regularization_strength.
flow.optimizers.Lamb: Adam whose step of each variable is as long as the variable, times the rate: for large batches.
flow.optimizers.Adafactor: Adam that keeps mean squares of the rows and columns of matrices only.
flow.optimizers.Muon: Steps of matrices are made nearly orthogonal; other variables, and those that exclude_layers names, follow AdamW.
flow.optimizers.ScheduleFreeAdamW: AdamW that averages weights as it goes, in place of a rate that falls.
flow.optimizers.LossScaleOptimizer: Another optimizer, with losses scaled up so that small 16-bit gradients do not vanish.
  print(flow.optimizers.LossScaleOptimizer(flow.optimizers.Adam()).initial_scale)      --> 32768
flow.optimizers.Optimizer: The class that optimizers written in Lua extend: build() and update_step() are yours to write.
  local Plain = flow.optimizers.Optimizer:extend("Plain")
  function Plain:update_step(gradient, variable, learning_rate) self:assign_sub(variable, gradient * learning_rate) end
  print(Plain { learning_rate = 0.1 }.name ~= nil)      --> true
flow.optimizers.get: The optimizer of a name, a config or an object.
  print(flow.optimizers.get("adam").name)      --> adam
flow.optimizers.from_json: The optimizer that to_json() described.
  print(flow.optimizers.from_json(flow.optimizers.SGD(0.5):to_json()).learning_rate)      --> 0.5
flow.optimizers.CLASS: The optimizer CLASS.
  local optimizer = flow.optimizers.CLASS { learning_rate = 0.5 }
  print(optimizer.learning_rate)      --> 0.5
flow.optimizers.schedules.CosineDecay: A rate that falls as a half cosine over decay_steps, after a warm-up if asked for.
flow.optimizers.schedules.CosineDecayRestarts: Cosine decays one after the other, each t_mul longer and m_mul lower.
flow.optimizers.schedules.ExponentialDecay: The rate times decay_rate every decay_steps.
  print(flow.optimizers.schedules.ExponentialDecay(1, 10, 0.5)(10))      --> 0.5
flow.optimizers.schedules.InverseTimeDecay: The rate / (1 + decay_rate step / decay_steps).
  print(flow.optimizers.schedules.InverseTimeDecay(1, 10, 1)(10))      --> 0.5
flow.optimizers.schedules.PolynomialDecay: From one rate to another along a power of the steps.
flow.optimizers.schedules.PiecewiseConstantDecay: values[i] up to the step boundaries[i].
  print(flow.optimizers.schedules.PiecewiseConstantDecay({ 10 }, { 1, 0.5 })(11))      --> 0.5
flow.optimizers.schedules.LearningRateSchedule: The class that schedules written in Lua extend: call(step) returns the rate.
  local Half = flow.optimizers.schedules.LearningRateSchedule:extend("Half")
  function Half:call(step) return 0.5 / (step + 1) end
  print(flow.optimizers.SGD(Half()).name)      --> sgd
flow.optimizers.schedules.CLASS: A learning rate that changes from step to step.
  print(flow.optimizers.schedules.CLASS(0.5, 10)(0) > 0)      --> true
LearningRateSchedule.extend: A class of schedules of your own: call(step) returns the rate.
  local Half = flow.optimizers.schedules.LearningRateSchedule:extend("Half")
  function Half:call(step) return 0.5 / (step + 1) end
schedule:call: The rate of a step; a schedule of your own defines it.
  local Half = flow.optimizers.schedules.LearningRateSchedule:extend("Half")
  function Half:call(step) return 0.5 / (step + 1) end
schedule:to_json: Keras' config of the schedule.
  print(#flow.optimizers.schedules.ExponentialDecay(1, 2, 0.5):to_json() > 0)      --> true
Optimizer.extend: A class of optimizers of your own: build() and update_step() are yours to write.
  local Plain = flow.optimizers.Optimizer:extend("Plain")
  function Plain:update_step(gradient, variable, learning_rate) self:assign_sub(variable, gradient * learning_rate) end
optimizer:apply_gradients: One update of variables by their gradients, two lists, or a list of pairs.
  local w, optimizer = flow.Variable(1), flow.optimizers.SGD(0.5)
  optimizer:apply_gradients({ flow.tensor(1) }, { w })
  print(w:value():item())      --> 0.5
optimizer:apply: The same; without variables, of those that build() was given.
  local w, optimizer = flow.Variable(1), flow.optimizers.SGD(0.5)
  optimizer:apply({ flow.tensor(1) }, { w })
optimizer:build: Makes the optimizer's variables for those that it will update.
  flow.optimizers.Adam():build { flow.Variable(1) }
optimizer:exclude_from_weight_decay: Variables, or names, that weight_decay leaves alone.
  local optimizer = flow.optimizers.AdamW()
  optimizer:exclude_from_weight_decay { var_names = { "bias" } }
optimizer:finalize_variable_values: Sets variables to their moving averages, with use_ema.
  local w, optimizer = flow.Variable(1), flow.optimizers.SGD { learning_rate = 0.5, use_ema = true }
  optimizer:apply_gradients({ flow.tensor(1) }, { w })
  optimizer:finalize_variable_values { w }
optimizer:scale_loss: The loss times the loss scale, before gradients are taken.
  print(flow.optimizers.SGD():scale_loss(flow.tensor(2)):item())      --> 2
optimizer:get_config: The arguments that make the optimizer again.
  print(flow.optimizers.SGD(0.5):get_config().learning_rate)      --> 0.5
optimizer:to_json: Keras' config of the optimizer.
  print(#flow.optimizers.SGD():to_json() > 0)      --> true
optimizer:update_step: The update of one variable; an optimizer of your own defines it.
  local Plain = flow.optimizers.Optimizer:extend("Plain")
  function Plain:update_step(gradient, variable, learning_rate) self:assign_sub(variable, gradient * learning_rate) end
optimizer:assign: Sets a variable, in update_step.
  local Own = flow.optimizers.Optimizer:extend("Own")
  function Own:update_step(gradient, variable, rate) self:assign(variable, variable - gradient * rate) end
optimizer:assign_add: Adds to a variable, in update_step.
  local Own = flow.optimizers.Optimizer:extend("Own")
  function Own:update_step(gradient, variable, rate) self:assign_add(variable, -gradient * rate) end
optimizer:assign_sub: Subtracts from a variable, in update_step.
  local Own = flow.optimizers.Optimizer:extend("Own")
  function Own:update_step(gradient, variable, rate) self:assign_sub(variable, gradient * rate) end
optimizer:add_variable: A variable of the optimizer's own.
  local Own = flow.optimizers.Optimizer:extend("Own")
  function Own:build(variables) self.count = self:add_variable { shape = {}, name = "count" } end
optimizer:add_variable_from_reference: A variable in the shape of another, made in build().
  local Own = flow.optimizers.Optimizer:extend("Own")
  function Own:build(variables) self.m = self:add_variable_from_reference(variables[1], { name = "m" }) end
optimizer:add_optimizer_variables: One variable for each that is trained, made in build().
  local Own = flow.optimizers.Optimizer:extend("Own")
  function Own:build(variables) self.m = self:add_optimizer_variables(variables, "m") end
flow.initializers.CLASS: First values of a variable: CLASS.
  print(layers.Dense(2, { kernel_initializer = flow.initializers.CLASS() }).name ~= nil)      --> true
flow.regularizers.CLASS: Adds a penalty on the size of weights to the loss: CLASS.
  print(layers.Dense(2, { kernel_regularizer = flow.regularizers.CLASS(0.01) }).name ~= nil)      --> true
flow.constraints.CLASS: Projects weights after each update: CLASS.
  print(layers.Dense(2, { kernel_constraint = flow.constraints.CLASS() }).name ~= nil)      --> true
flow.constraints.Constraint: What constraints written in Lua extend; alone it lets weights be as they are.
  print(flow.constraints.Constraint()(flow.tensor { -3 }):item())      --> -3
Constraint.extend: A class of constraints written in Lua, for add_weight: call(w) gives the weights as they may be.
  local Small = flow.constraints.Constraint:extend "Small"
  function Small:call(w) return w:clip(-1, 1) end
  print(Small()(flow.tensor { -3, 0.5 })[1]:item())      --> -1
constraint:call: The weights as a constraint lets them be; constraint(w) is the same.
  print(flow.constraints.NonNeg():call(flow.tensor { -3, 0.5 })[1]:item())      --> 0
flow.mixed_precision.Policy: What layers compute in and what their weights are: "float32", "float64", "mixed_float16" or "mixed_bfloat16".
  print(flow.mixed_precision.Policy("mixed_bfloat16").compute_dtype)      --> bfloat16
flow.mixed_precision.set_global_policy: The policy of layers that are made from now on.
  flow.mixed_precision.set_global_policy("float32")
flow.mixed_precision.global_policy: The policy of layers that are made now.
  print(flow.mixed_precision.global_policy().name)      --> float32
flow.keras.backend.clear_session: Automatic names of layers count from the beginning again.
  flow.keras.backend.clear_session()
flow.keras.backend.epsilon: The small number that Keras adds to divisors.
  print(flow.keras.backend.epsilon())      --> 1e-07
flow.keras.backend.floatx: The dtype of weights: float32.
  print(flow.keras.backend.floatx())      --> float32
flow.keras.backend.image_data_format: Where channels are: last.
  print(flow.keras.backend.image_data_format())      --> channels_last
flow.plot.history: Draws the curves of a History in the terminal, or as a .svg or .png picture.
  local history = flow.callbacks.History()
  history:on_epoch_end(0, { loss = 1 })
  flow.plot.history(history, "history.svg")
flow.plot.lines: Draws any curves in the terminal, or as a .svg or .png picture.
  flow.plot.lines({ accuracy = { 0.5, 0.8, 0.9 }, val_accuracy = { 0.4, 0.7, 0.8 } }, "curves.png", { xlabel = "epoch" })
flow.plot.histogram: Draws how often values stand in equal parts of their range, in the terminal, or as a .svg or .png picture.
  flow.plot.histogram(flow.random.normal { 1000 }, "values.svg", { bins = 30 })
flow.plot.images: Draws pictures in a grid with their titles, in the terminal, or as a .svg or .png picture.
  flow.plot.images(flow.random.uniform { 9, 28, 28, 1 }, "first.png", { titles = flow.arange(9), columns = 3 })
flow.plot.filters: Draws the filters of a convolution in a grid, in the terminal, or as a .svg or .png picture; grey is 0.
  local conv = layers.Conv2D(4, 3)
  conv:build { -1, 8, 8, 3 }
  flow.plot.filters(conv, "filters.png")
flow.plot.feature_maps: Draws what a layer of a model gives for a picture, each channel from its least value to its greatest.
  local model = flow.Sequential { layers.Input { 8, 8, 3 }, layers.Conv2D(4, 3), layers.Flatten() }
  flow.plot.feature_maps(model, flow.random.uniform { 8, 8, 3 }, "maps.png")
flow.plot.model: Writes the graph of a model's layers as a .svg or .png picture or a .dot file.
  flow.plot.model(flow.Sequential { layers.Input { 2 }, layers.Dense(1) }, "m.svg")
flow.plot.confusion_matrix: Shows how often each label was predicted as each; returns the matrix.
  print(flow.plot.confusion_matrix(flow.tensor { 0, 1 }, flow.tensor { 0, 1 }, { file = "c.svg" }))
]==]
