-- callbacks/backup_and_restore.lua: BackupAndRestore: a run that was killed goes on where its last backup stood, as if nothing had been.
--
--   model:fit(data, { epochs = 10, callbacks = { flow.callbacks.BackupAndRestore("backup", { save_freq = 100 }) } })
--
-- Unlike Keras' it goes on in the middle of an epoch, to the last bit: a backup holds model and optimizer, the running means of metrics,
-- random state, the order and position of the data, History, and what the other callbacks remember (get_state). A backup is made when
-- all callbacks have had their hooks; when the run has ended it is deleted, unless the end was Ctrl-C.

local errors = require "flow.errors"
local arguments = require "flow.arguments"
local log = require "flow.log"
local random = require "flow.random"
local training = require "flow.training"
local fit_position = require "flow.fit_position"
local callbacks = require "flow.callbacks"

local raise = errors.raise

local PARAMETERS = { "backup_dir", "save_freq", "double_checkpoint", "delete_checkpoint", "async" }
local KNOWN = {}
for _, name in ipairs(PARAMETERS) do KNOWN[name] = true end

local BackupAndRestore = callbacks.Callback:extend("BackupAndRestore")

-- The job's folder as launchers give it: FLOW_JOB_DIR, or --job-dir of the script.
local function job_dir()
  local found = os.getenv("FLOW_JOB_DIR")
  if found and found ~= "" then return found end
  local list = rawget(_G, "arg")
  for i, text in ipairs(type(list) == "table" and list or {}) do
    local value = text:match("^%-%-job[-_]dir=(.+)$") or (text:match("^%-%-job[-_]dir$") and list[i + 1])
    if value then return value end
  end
end

local function default_folder()
  local folder = job_dir()
  if not folder then raise("BackupAndRestore: backup_dir is missing, and so are FLOW_JOB_DIR and --job-dir, below which it would be") end
  return folder:gsub("/+$", "") .. "/backup"
end

-- BackupAndRestore(backup_dir, { save_freq = "epoch" or a number of batches, double_checkpoint = false, delete_checkpoint = true,
-- async = false }). double_checkpoint: keeps the one before as well, in case that the newest is damaged. async: a thread writes.
function BackupAndRestore:init(...)
  local options = errors.check_options("BackupAndRestore", arguments.named("BackupAndRestore", PARAMETERS, 4, ...), KNOWN)
  local frequency = options.save_freq == nil and "epoch" or options.save_freq
  if frequency ~= "epoch" and (type(frequency) ~= "number" or frequency < 1 or frequency ~= math.floor(frequency)) then
    raise('BackupAndRestore: save_freq is "epoch" or a number of batches, got %s', errors.describe(frequency))
  end
  if options.backup_dir ~= nil and (type(options.backup_dir) ~= "string" or options.backup_dir == "") then
    raise("BackupAndRestore: backup_dir is a folder, got %s", errors.describe(options.backup_dir))
  end
  self._folder, self._frequency = options.backup_dir or default_folder(), frequency
  self._keep, self._delete, self._async = options.double_checkpoint and 2 or 1, options.delete_checkpoint ~= false, options.async == true
  self._seen, self._manager = 0, false
end

-- What a backup holds: see the head of the file.
local function new_manager(self, run)
  local train = require "flow.train"
  local means = {}
  for i, entry in ipairs(training.trackers(run.model)) do means[i] = entry.metric end
  local position = {
    get_state = function() return fit_position.get_state(run) end,
    set_state = function(_, state) fit_position.set_state(run, state) end,
  }
  local checkpoint = train.Checkpoint { model = run.model, means = means, random = random, run = position }
  return train.CheckpointManager(checkpoint, self._folder, { max_to_keep = self._keep, checkpoint_name = "backup", async = self._async })
end

function BackupAndRestore:get_state() return { seen = self._seen } end
function BackupAndRestore:set_state(state) self._seen = state.seen end

function BackupAndRestore:_resume(run)
  if run.batch == 0 then
    self._manager, self._seen = new_manager(self, run), 0
    if not self._manager.latest_checkpoint then return end
    fit_position.prepare(run)
  end
  local begun = run.batch > 0
  local path, problem = self._manager:_restore_sound()
  if path then
    if not begun then log.info("BackupAndRestore: training goes on in epoch %d behind batch %d (%s)", run.epoch + 1, run.batch, path) end
    return
  end
  log.warning("BackupAndRestore: no backup in %s can be used, training begins anew (%s)", self._folder, tostring(problem))
end

function BackupAndRestore:_after_batch()
  if self._frequency == "epoch" then return end
  self._seen = self._seen + 1
  if self._seen % self._frequency == 0 then self._manager:save() end
end

function BackupAndRestore:_after_epoch()
  if self._frequency == "epoch" then self._manager:save() end
end

function BackupAndRestore:_after_train(run)
  local ended = not run.interrupted and self._delete
  if ended then self._manager:_delete_all() else self._manager:sync() end
  self._manager = false
end

return BackupAndRestore
