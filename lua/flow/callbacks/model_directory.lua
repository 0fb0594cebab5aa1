-- callbacks/model_directory.lua: ModelDirectory: a folder that a training lives in, as the model_dir of TensorFlow's estimators: a run goes
-- on from what is there, and leaves there what it learns.
--
--   model:fit(data, { epochs = 10, callbacks = { flow.callbacks.ModelDirectory("runs/digits", { save_freq = 500, max_to_keep = 5 }) } })
--
-- The folder has the last checkpoints, ckpt-1 ... with the file `checkpoint`, which flow.train.latest_checkpoint and SidecarEvaluator read,
-- and, when the training has ended, model.keras. Checkpoints are those of BackupAndRestore, and stay: a run that was killed goes on to the
-- last bit, one with more epochs goes on after the last one, and one that has ended already does nothing.

local io = require "flow.io"
local saving = require "flow.distribute.saving"
local BackupAndRestore = require "flow.callbacks.backup_and_restore"
local callbacks = require "flow.train.callback"
local workers = require "flow.distribute.model_workers"

local ModelDirectory = callbacks.stock("ModelDirectory", BackupAndRestore)

-- ModelDirectory(model_dir, { save_freq = "epoch" or a number of batches, max_to_keep = 5, export = false, async = false }). Without
-- model_dir it is `model` in the job's folder. export: writes the folder `export`, for serving, too. async: a thread writes checkpoints.
require("flow.signature").takes("model_dir?: text, save_freq: frequency = 'epoch', max_to_keep: count = 5, export: boolean = false, "
  .. "{ async: boolean = false }")
function ModelDirectory:init(folder, frequency, most, export, options)
  self:_begin(folder or self:_folder_of_job("model_dir", "model"), frequency,
    { keep = most, delete = false, async = options.async, checkpoint_name = "ckpt" })
  self._export, self._learnt = export, false
end

-- _learnt: this run has made at least one checkpoint, so that model.keras has to be written again.
function ModelDirectory:_save(run)
  self._learnt = true
  BackupAndRestore._save(self, run)
end

-- The last epoch is saved whatever save_freq.
function ModelDirectory:_after_epoch(run)
  if self._frequency == "epoch" or run.epoch >= self.params.epochs or run.model.stop_training then self:_save(run) end
end

-- Writes model.keras, and the export, unless the run was interrupted, or had ended before and the file is there. Of several workers the
-- chief writes.
function ModelDirectory:_after_train(run)
  local path, learnt = io.join(self._folder, "model.keras"), self._learnt
  BackupAndRestore._after_train(self, run)
  self._learnt = false
  if run.interrupted then return end
  saving.once(workers.of(run.model), path, function()
    if not learnt and io.exists(path) then return end
    run.model:save(path)
    if self._export then run.model:export(io.join(self._folder, "export")) end
  end)
end

return ModelDirectory
