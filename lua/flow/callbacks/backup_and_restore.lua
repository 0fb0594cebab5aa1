-- callbacks/backup_and_restore.lua: BackupAndRestore: a run that was killed goes on where its last backup stood, as if nothing had been.
--
--   model:fit(data, { epochs = 10, callbacks = { flow.callbacks.BackupAndRestore("backup", { save_freq = 100 }) } })
--
-- Unlike Keras' it goes on in the middle of an epoch, to the last bit: a backup holds model and optimizer, the running means of metrics,
-- random state, the order and position of the data, History, and what the other callbacks remember (get_state). A backup is made when
-- all callbacks have had their hooks; when the run has ended it is deleted, unless the end was Ctrl-C.
--
-- Of several workers, which all have this callback, only the chief writes and reads the folder; where workers read data of their own the
-- backup has the place of each. What the chief's callbacks remember is everybody's after a restart.

local host = require "flow.host"
local errors = require "flow.errors"
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

local BackupAndRestore = callbacks.stock("BackupAndRestore")

-- The job's folder as launchers give it: FLOW_JOB_DIR, Vertex AI's AIP_CHECKPOINT_DIR, or --job-dir of the script.
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

local function default_folder()
  local folder = job_dir()
  if not folder then raise("BackupAndRestore: backup_dir is missing, and so are FLOW_JOB_DIR and --job-dir, in which it would be made") end
  return folder:gsub("/+$", "") .. "/backup"
end

-- BackupAndRestore(backup_dir, { save_freq = "epoch" or a number of batches, double_checkpoint = false, delete_checkpoint = true,
-- async = false }). double_checkpoint: keeps the one before as well, in case that the newest is damaged. async: a thread writes.
takes("backup_dir?: text, save_freq: frequency = 'epoch', double_checkpoint: boolean = false, delete_checkpoint: boolean = true, "
  .. "{ async: boolean = false }")
function BackupAndRestore:init(folder, frequency, double_checkpoint, delete_checkpoint, options)
  self._folder, self._frequency = folder or default_folder(), frequency
  self._keep, self._delete, self._async = double_checkpoint and 2 or 1, delete_checkpoint, options.async
  self._seen, self._manager, self._checkpoint, self._position, self._worker = 0, false, false, false, false
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
  return train.Checkpoint { model = run.model, means = means, random = random, run = position }
end

local function new_manager(self)
  return train.CheckpointManager(self._checkpoint, self._folder,
    { max_to_keep = self._keep, checkpoint_name = "backup", async = self._async })
end

function BackupAndRestore:get_state() return { seen = self._seen } end
function BackupAndRestore:set_state(state) self._seen = state.seen end

-- Brings this process to where the newest backup stands; returns its path. nil: there is none, or what is wrong with all.
local function restore(self, run)
  if not run.begun then
    local io = require "flow.io"
    if not workers.of(self.model) then      -- of several writing tells all
      signature.internal(io).check_writable(io.join(io.path(self._folder, "BackupAndRestore"), "backup"), "BackupAndRestore")
    end
    self._manager = new_manager(self)
  end
  if not self._manager.latest_checkpoint then return nil end
  if not run.begun then fit_position.prepare(run) end
  local path, problem = self._manager:_restore_sound()
  if path then return path end
  log.warning("BackupAndRestore: no backup in %s can be used, training begins from the start (%s)", self._folder, tostring(problem))
end

-- The chief restores, and all take over what it has then: the others need not see the folder.
local function restore_all(self, run, worker)
  if worker.apart then      -- which takes over what the others have in memory
    if worker.rank == 0 then self._manager = new_manager(self) end
    return nil
  end
  worker:agree("backup", ("save_freq %s"):format(self._frequency))
  if not run.begun then saving.check_shared(worker, self._folder, "BackupAndRestore") end
  local ok, path
  if worker.rank == 0 then ok, path = pcall(restore, self, run) end
  local told = worker:broadcast_text(ok and "ok " .. (path or "") or "no " .. saving.without_position(path))
  if worker.rank == 0 and not ok then error(path, 0) end
  if told:find("^no ") then raise("BackupAndRestore: the chief could not restore: %s", told:sub(4)) end
  if told == "ok " then return nil end
  if worker.rank > 0 and not run.begun then fit_position.prepare(run) end
  self._checkpoint:_share(worker)
  return told:sub(4)
end

function BackupAndRestore:_resume(run)
  local worker, begun = workers.of(run.model), run.begun
  if not begun then self._checkpoint, self._seen, self._worker = new_checkpoint(self, run), 0, worker or false end
  local path
  if worker then worker:with_speaker(0, function() path = restore_all(self, run, worker) end) else path = restore(self, run) end
  if path and not begun then
    log.info("BackupAndRestore: training continues in epoch %d after batch %d (%s)", run.epoch + 1, run.batch, path)
  end
end

local function save(self, run)
  self._position = fit_position.get_state(run)
  saving.once(self._worker, WHAT, function() self._manager:save() end, "backup")
end

function BackupAndRestore:_after_batch(run, count)
  if self._frequency == "epoch" then return end
  self._seen = self._seen + count
  if self._seen < self._frequency then return end
  self._seen = 0
  save(self, run)
end

function BackupAndRestore:_after_epoch(run)
  if self._frequency == "epoch" then save(self, run) end
end

-- This process is to end soon, or another worker's. A backup that cannot be made does not keep it from that: the one before is there.
function BackupAndRestore:_before_end(run)
  local ok, problem = pcall(function()
    save(self, run)
    saving.once(self._worker, WHAT, function() self._manager:sync() end, "backup")
  end)
  if ok then log.info("BackupAndRestore: saved after batch %d of epoch %d, before the process ends", run.batch, run.epoch + 1)
  else log.warning("BackupAndRestore: no backup before the process ends: %s", tostring(problem)) end
end

-- All workers have ended their last epoch.
function BackupAndRestore:_after_train(run)
  local ended = not run.interrupted and self._delete
  saving.once(self._worker, WHAT, function()
    if ended then self._manager:_delete_all() else self._manager:sync() end
  end, "backup")
  self._manager, self._checkpoint, self._position, self._worker = false, false, false, false
end

return BackupAndRestore
