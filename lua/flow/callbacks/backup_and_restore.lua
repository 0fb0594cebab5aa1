-- callbacks/backup_and_restore.lua: BackupAndRestore: a run that was killed goes on where its last backup stood, as if nothing had been.
--
--   model:fit(data, { epochs = 10, callbacks = { flow.callbacks.BackupAndRestore("backup", { save_freq = 100 }) } })
--
-- Unlike Keras' it goes on in the middle of an epoch, to the last bit: a backup holds model and optimizer, the running means of metrics,
-- what stateful layers keep, random state, the order and position of the data, History, and what the other callbacks remember (get_state).
-- A backup is made when all callbacks have had their hooks; when the run has ended it is deleted, unless the end was Ctrl-C.
--
-- Of several workers, which all have this callback, only the chief writes and reads the folder; where workers read their own data the
-- backup has the place of each. What the chief's callbacks remember is everybody's after a restart.
--
-- Fields: _folder, _frequency ("epoch" or batches), _keep, _delete, _async and _checkpoint_name say what is made; _seen counts batches
-- since the last backup; _manager, _checkpoint, _position and _worker are of the run under way, else false. _position is the table of
-- fit_position.get_state that the next save writes, or that a restore has read.
--
-- Order of a run: _resume after on_train_begin (again after on_epoch_begin of an epoch that goes on), _after_batch and _after_epoch, which
-- save, _after_train, which deletes or waits for the last write.

local host = require "flow.host"
local errors = require "flow.errors"
local object = require "flow.object"
local log = require "flow.log"
local random = require "flow.tensor.random"
local training = require "flow.train.compile"
local fit_position = require "flow.train.fit_position"
local train = require "flow.checkpoint"
local workers = require "flow.distribute.model_workers"
local saving = require "flow.distribute.saving"
local callbacks = require "flow.train.callback"

local signature = require "flow.signature"
local raise, takes = errors.raise, signature.takes

local WHAT = "the backup"      -- whichever folder other workers name: the chief's is written
local function name_of(self) return object.class_of(self).name end      -- that of a class made from this one (model_directory.lua)

local BackupAndRestore = callbacks.stock("BackupAndRestore")

-- The job's folder as launchers give it: FLOW_JOB_DIR, Vertex AI's AIP_CHECKPOINT_DIR, or --job-dir of the script; nil: none does.
local function job_dir()
  for _, found in ipairs { host.getenv("FLOW_JOB_DIR") or "", host.getenv("AIP_CHECKPOINT_DIR") or "" } do
    if found ~= "" then return found end
  end
  local list = rawget(_G, "arg")
  for i, text in ipairs(type(list) == "table" and list or {}) do
    local value = text:match("^%-%-job[-_]dir=(.+)$") or (text:match("^%-%-job[-_]dir$") and list[i + 1])
    if value then return value end
  end
end

-- What a callback uses that was given no folder. parameter: how its own is called.
function BackupAndRestore:_folder_of_job(parameter, child)
  local folder = job_dir()
  if not folder then
    raise("%s: %s is missing, and so are FLOW_JOB_DIR and --job-dir, in which it would be made", name_of(self), parameter)
  end
  return folder:gsub("/+$", "") .. "/" .. child
end

-- how: { keep = how many files, delete = whether they go when the run has ended, async =, checkpoint_name = }
function BackupAndRestore:_begin(folder, frequency, how)
  self._folder, self._frequency = folder, frequency
  self._keep, self._delete, self._async, self._checkpoint_name = how.keep, how.delete, how.async, how.checkpoint_name
  self._seen, self._manager, self._checkpoint, self._position, self._worker = 0, false, false, false, false
end

-- BackupAndRestore(backup_dir, { save_freq = "epoch" or a number of batches, double_checkpoint = false, delete_checkpoint = true,
-- async = false }). double_checkpoint: keeps the one before as well, in case that the newest is damaged. async: a thread writes.
takes("backup_dir?: text, save_freq: frequency = 'epoch', double_checkpoint: boolean = false, delete_checkpoint: boolean = true, "
  .. "{ async: boolean = false }")
function BackupAndRestore:init(folder, frequency, double_checkpoint, delete_checkpoint, options)
  self:_begin(folder or self:_folder_of_job("backup_dir", "backup"), frequency,
    { keep = double_checkpoint and 2 or 1, delete = delete_checkpoint, async = options.async, checkpoint_name = "backup" })
end

-- What a backup holds: see the head of the file.
local function new_checkpoint(self, run)
  local means = {}
  for i, entry in ipairs(training.trackers(run.model, true)) do means[i] = entry.metric end
  local position = {
    get_state = function() return self._position end,
    set_state = function(_, state)
      self._position = state
      fit_position.set_state(run, state)
    end,
  }
  local kept = training.kept_states(run.model)
  return train.Checkpoint { model = run.model, means = means, random = random, run = position, kept = #kept > 0 and kept or nil }
end

local function new_manager(self)
  return train.CheckpointManager(self._checkpoint, self._folder,
    { max_to_keep = self._keep, checkpoint_name = self._checkpoint_name, async = self._async })
end

function BackupAndRestore:get_state() return { seen = self._seen } end
function BackupAndRestore:set_state(state) self._seen = state.seen end

-- Brings this process to where the newest backup is; returns its path. nil: there is none, or what is wrong with all.
local function restore(self, run)
  if not run.begun then
    local io = require "flow.io"
    if not workers.of(self:_model()) then      -- of several writing tells all
      signature.internal(io).check_writable(io.join(io.path(self._folder, name_of(self)), "backup"), name_of(self))
    end
    self._manager = new_manager(self)
  end
  if not self._manager.latest_checkpoint then return nil end
  if not run.begun then fit_position.prepare(run) end
  local path, problem = self._manager:_restore_sound()
  if path then return path end
  log.warning("%s: no backup in %s can be used, training begins from the start (%s)", name_of(self), self._folder, tostring(problem))
end

-- The chief restores, and all take over what it has then: the others need not see the folder.
local function restore_all(self, run, worker)
  if worker.apart then      -- which takes over what the others have in memory
    if worker.rank == 0 then self._manager = new_manager(self) end
    return nil
  end
  worker:agree("backup", ("save_freq %s"):format(self._frequency))
  if not run.begun then saving.check_shared(worker, self._folder, name_of(self)) end
  local ok, path
  if worker.rank == 0 then ok, path = pcall(restore, self, run) end
  local told = worker:broadcast_text(ok and "ok " .. (path or "") or "no " .. saving.without_position(path))
  if worker.rank == 0 and not ok then error(path, 0) end
  if told:find("^no ") then raise("%s: the chief could not restore: %s", name_of(self), told:sub(4)) end
  if told == "ok " then return nil end
  if worker.rank > 0 and not run.begun then fit_position.prepare(run) end
  self._checkpoint:_share(worker)
  return told:sub(4)
end

-- Called when a run begins, and again when the hooks of a resumed epoch have run (run.begun), whose effects on the model were in the backup
-- already.
function BackupAndRestore:_resume(run)
  local worker, begun = workers.of(run.model), run.begun
  if not begun then self._checkpoint, self._seen, self._worker = new_checkpoint(self, run), 0, worker or false end
  local path
  if worker then worker:with_speaker(0, function() path = restore_all(self, run, worker) end) else path = restore(self, run) end
  if not path or begun or worker and worker.rank > 0 then return end      -- the chief says it for all
  if run.epoch >= self.params.epochs or run.stopped and run.batch == 0 then
    log.info("%s: this training has ended already, after %d epochs (%s)", name_of(self), run.epoch, path)
  else
    log.info("%s: training continues in epoch %d after batch %d (%s)", name_of(self), run.epoch + 1, run.batch, path)
  end
end

-- What this process writes with, as only the chief does. Another worker comes here if the chief is lost and not waited for: it ends, with
-- the chief's name.
local function manager_of(self)
  if not self._manager then self._worker:check() end
  return self._manager
end

function BackupAndRestore:_save(run)
  self._position = fit_position.get_state(run)
  saving.once(self._worker, WHAT, function() manager_of(self):save() end, "backup")
end

-- count: batches since the last call, those of an execution.
function BackupAndRestore:_after_batch(run, count)
  if self._frequency == "epoch" then return end
  self._seen = self._seen + count
  if self._seen < self._frequency then return end
  self._seen = 0
  self:_save(run)
end

function BackupAndRestore:_after_epoch(run)
  if self._frequency == "epoch" then self:_save(run) end
end

-- This process is to end soon, or another worker's. A backup that cannot be made does not keep it from that: the one before is there.
function BackupAndRestore:_before_end(run)
  local ok, problem = pcall(function()
    self:_save(run)
    saving.once(self._worker, WHAT, function() manager_of(self):sync() end, "backup")
  end)
  local name = name_of(self)
  if ok then log.info("%s: saved after batch %d of epoch %d, before the process ends", name, run.batch, run.epoch + 1)
  else log.warning("%s: no backup before the process ends: %s", name, tostring(problem)) end
end

-- All workers have ended their last epoch. If the chief is lost now and comes back, it leaves this run out: the worker that has the newest
-- state deletes the backup.
function BackupAndRestore:_after_train(run)
  local ended = not run.interrupted and self._delete
  saving.once(self._worker, WHAT, function()
    local apart = not self._manager and self._worker.apart
    local manager = apart and new_manager(self) or manager_of(self)
    if ended then manager:_delete_all() else manager:sync() end
  end, "backup")
  self._manager, self._checkpoint, self._position, self._worker = false, false, false, false
end

return BackupAndRestore
