-- callbacks.lua: what flow.help says of callbacks: see reference/texts.lua for the form.
return [==[
flow.callbacks.Callback: The class that callbacks of your own extend: on_epoch_end(epoch, logs) and the other hooks.
  local Tell = flow.callbacks.Callback:extend("Tell")
  function Tell:on_epoch_end(epoch, logs) print(epoch, logs.loss) end
Callback.extend: A class of callbacks of your own.
  local Tell = flow.callbacks.Callback:extend("Tell")
  function Tell:on_epoch_end(epoch, logs) print(epoch, logs.loss) end
flow.callbacks.History: The results of every epoch: what fit returns.
  print(next(flow.callbacks.History().history))      --> nil
flow.callbacks.EarlyStopping: Ends training when a value has not improved for patience epochs.
  print(flow.callbacks.EarlyStopping { monitor = "val_loss", patience = 3 }.patience)      --> 3
flow.callbacks.ModelCheckpoint: Saves the model after epochs or batches; the path may hold {epoch:02d} and {val_loss:.2f}.
  print(flow.callbacks.ModelCheckpoint("best.keras", { save_best_only = true }).filepath)      --> best.keras
flow.callbacks.BackupAndRestore: Backs the whole training up, so that a run that was stopped goes on where it was.
  print(flow.callbacks.BackupAndRestore("backup") ~= nil)      --> true
flow.callbacks.ModelDirectory: A folder that a training lives in: a run goes on from what is there, and saves there.
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0, callbacks = { flow.callbacks.ModelDirectory "run" } })
  print(flow.train.latest_checkpoint "run")      --> run/ckpt-1
flow.callbacks.TensorBoard: Writes event files for TensorBoard: curves, histograms, pictures, graph.
  print(flow.callbacks.TensorBoard("logs").log_dir)      --> logs
flow.callbacks.CSVLogger: Writes a line for each epoch into a .csv file.
  print(flow.callbacks.CSVLogger("log.csv").separator)      --> ,
flow.callbacks.ReduceLROnPlateau: Lowers the learning rate when a value has not improved for patience epochs.
  print(flow.callbacks.ReduceLROnPlateau { patience = 2 }.factor)      --> 0.1
flow.callbacks.LearningRateScheduler: Sets the learning rate of each epoch: schedule(epoch, rate).
  flow.callbacks.LearningRateScheduler(function(epoch, rate) return rate * 0.9 end)
flow.callbacks.LambdaCallback: A callback of functions.
  flow.callbacks.LambdaCallback { on_epoch_end = function(epoch, logs) print(epoch) end }
flow.callbacks.TerminateOnNaN: Ends training when the loss is NaN or infinite.
  flow.callbacks.TerminateOnNaN()
flow.callbacks.SwapEMAWeights: Evaluates and saves with the moving averages of an optimizer with use_ema.
  flow.callbacks.SwapEMAWeights()
flow.callbacks.RemoteMonitor: Sends the results of every epoch to a server, by a function of yours.
  flow.callbacks.RemoteMonitor { root = "http://host:9000", send = function(url, body, headers) print(url, body, headers) end }
flow.callbacks.ProgbarLogger: Draws the bar of fit; fit adds it by itself.
  flow.callbacks.ProgbarLogger()
callback:set_model: Takes the model of a run, before on_train_begin; callbacks of your own may define it.
  flow.callbacks.Callback:extend("Tell").set_model = function(self, model) print(self, model) end
callback:set_params: Takes the parameters of a run, epochs, steps and verbose, before on_train_begin.
  flow.callbacks.Callback:extend("Tell").set_params = function(self, params) print(self, params.epochs) end
callback:on_train_begin: Called before the first epoch.
  flow.callbacks.LambdaCallback { on_train_begin = function() print("begin") end }
callback:on_train_end: Called after the last epoch.
  flow.callbacks.LambdaCallback { on_train_end = function() print("end") end }
callback:on_epoch_begin: Called before an epoch, which counts from 0.
  flow.callbacks.LambdaCallback { on_epoch_begin = function(epoch) print(epoch) end }
callback:on_epoch_end: Called after an epoch, which counts from 0, with its loss and metrics.
  flow.callbacks.LambdaCallback { on_epoch_end = function(epoch, logs) print(logs.loss) end }
callback:on_train_batch_begin: Called before a batch, which counts from 0.
  flow.callbacks.LambdaCallback { on_train_batch_begin = function(batch) print(batch) end }
callback:on_train_batch_end: Called after a batch, which counts from 0, with the loss and metrics so far.
  flow.callbacks.LambdaCallback { on_train_batch_end = function(batch, logs) print(logs.loss) end }
callback:on_test_begin: Called before evaluate, or before validation.
  flow.callbacks.LambdaCallback { on_test_begin = function() print("begin") end }
callback:on_test_end: Called after evaluate, or after validation, with loss and metrics.
  flow.callbacks.LambdaCallback { on_test_end = function(logs) print(logs.loss) end }
callback:on_batch_begin: As on_train_batch_begin, which calls it.
  flow.callbacks.Callback():on_batch_begin(0)
callback:on_batch_end: As on_train_batch_end, which calls it.
  flow.callbacks.Callback():on_batch_end(0)
callback:on_test_batch_begin: Called before a batch of evaluate or of validation.
  flow.callbacks.LambdaCallback { on_test_batch_begin = function(batch) print(batch) end }
callback:on_predict_batch_begin: Called before a batch of predict.
  flow.callbacks.LambdaCallback { on_predict_batch_begin = function(batch) print(batch) end }
callback:on_test_batch_end: Called after a batch of evaluate or of validation.
  flow.callbacks.LambdaCallback { on_test_batch_end = function(batch) print(batch) end }
callback:on_predict_begin: Called before predict.
  flow.callbacks.LambdaCallback { on_predict_begin = function() print("begin") end }
callback:on_predict_end: Called after predict.
  flow.callbacks.LambdaCallback { on_predict_end = function() print("end") end }
callback:on_predict_batch_end: Called after a batch of predict.
  flow.callbacks.LambdaCallback { on_predict_batch_end = function(batch) print(batch) end }
callback:get_state: What the callback remembers, for a backup: a table of numbers, texts, booleans and tensors.
  print(type(flow.callbacks.EarlyStopping():get_state()))      --> table
callback:set_state: Goes on with what get_state() returned.
  local history = flow.callbacks.History()
  history:set_state { history = { loss = { 1 } }, epoch = { 0 } }
callback:plot: Draws the curves in the terminal, or as a .svg or .png picture.
  local history = flow.callbacks.History()
  history:on_epoch_end(0, { loss = 1 })
  history:on_epoch_end(1, { loss = 0.5 })
  history:plot("history.svg")
]==]
