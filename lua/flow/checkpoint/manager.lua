-- manager.lua: flow.train.CheckpointManager: numbered checkpoints in a folder, of which the newest are kept.
--
--   local manager = flow.train.CheckpointManager(checkpoint, "folder", { max_to_keep = 3 })
--   manager:restore_or_initialize()                  the newest sound one
--   manager:save()                                   folder/ckpt-1, folder/ckpt-2 ...
--   manager.latest_checkpoint, manager.checkpoints
--
-- An old checkpoint goes when the new one is on the disk and the folder's file names it. async = true: the values are copied, and a
-- thread writes them; whether that failed tells the next save, or sync().
--
-- Fields: _entries, { path =, time = } of the checkpoints that are kept, the oldest first; _latest, the path of the newest, or false;
-- _preserved, the time of the last one that is kept for ever (keep_checkpoint_every_n_hours); _last_step, the value of step_counter at the
-- last save; _running, { save =, path =, entries = } of a save that a thread makes, else false. Entries and _latest change only when the
-- file is on the disk.

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local variable = require "flow.tensor.variable"
local files = require "flow.io"
local log = require "flow.log"
local checkpoints = require "flow.checkpoint.checkpoint"
local directory = require "flow.checkpoint.directory"
local saving = require "flow.distribute.saving"

local C, check, raise = native.C, native.check, errors.raise
local signature = require "flow.signature"
local takes = signature.takes
local manager = {}

local Manager = object.class("CheckpointManager")
local save_out = native.out("flow_save")

-- An option that is a number from `least`, or false if it was not given.
local function check_number(name, value, least)
  if value ~= nil and (type(value) ~= "number" or not (value >= least)) then
    raise("CheckpointManager: %s is a number from %g, got %s", name, least, errors.describe(value))
  end
  return value or false
end

-- Entries that an earlier manager left, without those that it decided to keep for ever.
local function take_over(self)
  local found = directory.read(self.directory)
  if not found then return end
  self._preserved = found.preserved or self._preserved
  for i, path in ipairs(found.paths) do
    local time = found.times[i] or os.time()
    if C.flow_path_kind(directory.file_of(path)) == C.FLOW_PATH_FILE and (not found.preserved or time > found.preserved) then
      self._entries[#self._entries + 1] = { path = path, time = time }
    end
  end
  if C.flow_path_kind(directory.file_of(found.latest)) == C.FLOW_PATH_FILE then self._latest = found.latest end
end

-- flow.train.CheckpointManager. Makes the folder, removes files that a killed process left half written there, and takes over the
-- checkpoints that the folder's file names. most: max_to_keep, or nil to keep all.
function manager.CheckpointManager(checkpoint, folder, most, options)
  if not object.has(checkpoint, "_apply") then
    raise("CheckpointManager: expected a flow.train.Checkpoint, got %s", errors.describe(checkpoint))
  end
  local name = options.checkpoint_name
  if type(name) ~= "string" or name == "" or name:find("[/#%z]") then
    raise("CheckpointManager: checkpoint_name is a text without /, got %s", errors.describe(name))
  end
  if options.checkpoint_interval and not variable.is_variable(options.step_counter) then
    raise("CheckpointManager: checkpoint_interval needs a step_counter, a flow.Variable")
  end
  if options.init_fn ~= nil and not signature.is_callable(options.init_fn) then
    raise("CheckpointManager: init_fn is a function, got %s", errors.describe(options.init_fn))
  end
  local self = object.new(Manager, {
    checkpoint = checkpoint, directory = files.path(folder, "CheckpointManager"), _name = name, _entries = {}, _latest = false,
    _max = check_number("max_to_keep", most, 1), _hours = check_number("keep_checkpoint_every_n_hours",
      options.keep_checkpoint_every_n_hours, 0), _interval = check_number("checkpoint_interval", options.checkpoint_interval, 1),
    _step = options.step_counter or false, _last_step = false, _init = options.init_fn or false, _async = options.async,
    _running = false, _preserved = os.time() - 1,
  })
  check(C.flow_make_folders(self.directory))
  C.flow_remove_abandoned(self.directory)
  take_over(self)
  return self
end

function Manager.fields.latest_checkpoint(self) return self._latest or nil end
function Manager.fields.checkpoints(self)
  local list = {}
  for i, entry in ipairs(self._entries) do list[i] = entry.path end
  return list
end

-- The path of a checkpoint by its number, without the ending.
local function path_of(self, number)
  return directory.join(self.directory, ("%s-%d"):format(self._name, number))
end

---- saving ----------------------------------------------------------------------------------------------------------------------

-- What the folder's file says if these are the entries.
local function state_of(self, latest, entries)
  local state = { latest = latest, paths = {}, times = {}, preserved = self._preserved }
  for i, entry in ipairs(entries) do state.paths[i], state.times[i] = entry.path, entry.time end
  return state
end

-- The entries with a new one at their end, where it is the only one with its path.
local function with(entries, path)
  local list = {}
  for _, entry in ipairs(entries) do
    if entry.path ~= path then list[#list + 1] = entry end
  end
  list[#list + 1] = { path = path, time = os.time() }
  return list
end

-- Forgets what is too much; returns the paths.
local function trim(self)
  local gone = {}
  if not self._max then return gone end
  while #self._entries > self._max do
    local entry = table.remove(self._entries, 1)
    if self._hours and entry.time - self._hours * 3600 >= self._preserved then self._preserved = entry.time
    else gone[#gone + 1] = entry.path end
  end
  return gone
end

-- Deletes what is too much, once the newest is safe.
local function sweep(self)
  local gone = trim(self)
  if #gone == 0 then return end
  for _, path in ipairs(gone) do os.remove(directory.file_of(path)) end
  directory.write(self.directory, state_of(self, self._latest, self._entries))
end

local function finished(self, path, entries)
  self._latest, self._entries = path, entries
  sweep(self)
end

-- Waits for the save that runs in the background, if there is one, and raises what went wrong with it.
function Manager:sync()
  local running = self._running
  if not running then return end
  self._running = false
  local status = C.flow_save_wait(running.save)
  local problem = status ~= 0 and native.string(C.flow_last_error())
  native.close(running.save, C.flow_save_release)
  if problem then raise("the checkpoint %s was not saved: %s", running.path, problem) end
  finished(self, running.path, running.entries)
end
Manager.close = Manager.sync

-- Copies the values and starts the thread that writes them and, after them, the folder's file.
local function begin_save(self, path, entries)
  local writer = self.checkpoint:_writer()
  writer:snapshot()
  local text = directory.encode(self.directory, state_of(self, path, entries))
  local file, state_file = directory.file_of(path), directory.state_file(self.directory)
  check(C.flow_make_folders(self.directory))
  native.try(C.flow_save_begin, writer._handle, file, "safetensors", state_file, text, save_out)
  writer:close()
  self._running = { save = native.own(save_out, C.flow_save_release), path = path, entries = entries }
end

-- Writes the checkpoint, the folder's file, and deletes what is too much.
local function save_now(self, path, entries)
  self.checkpoint:write(path)
  directory.write(self.directory, state_of(self, path, entries))
  finished(self, path, entries)
end

-- Returns the number.
local function save(self, number)
  self:sync()
  local counter = self.checkpoint.save_counter
  local before = counter:item()
  counter:assign(number or before + 1)
  local path = path_of(self, counter:item())
  local ok, problem = pcall(self._async and begin_save or save_now, self, path, with(self._entries, path))
  if not ok then
    counter:assign(before)
    error(problem, 0)
  end
  return ("%d"):format(counter:item())
end

-- The chief of several workers has saved this number (distribute/saving.lua).
local function take_note(self, number)
  local path = path_of(self, number)
  self.checkpoint.save_counter:assign(number)
  self._latest, self._entries = path, with(self._entries, path)
  trim(self)
end

-- Saves <folder>/<checkpoint_name>-<number> and returns this path; nil if fewer than checkpoint_interval steps went by. When it fails,
-- everything before is unchanged. Of several workers the chief saves.
takes "checkpoint_number?: whole, { check_interval: boolean = true }"
function Manager:save(number, options)
  local step = self._step and self._step:item()
  if self._interval and options.check_interval and self._last_step and step < self._last_step + self._interval then return nil end
  local saved, mine = saving.once(self.checkpoint:_workers(), directory.join(self.directory, self._name), function()
    return save(self, number)
  end)
  if not mine then
    take_note(self, tonumber(saved))
    if not self._async then
      saving.check_seen(self.checkpoint:_workers(), directory.file_of(path_of(self, tonumber(saved))), "CheckpointManager")
    end
  end
  self._last_step = step
  return path_of(self, tonumber(saved))
end

---- restoring -------------------------------------------------------------------------------------------------------------------

-- The newest sound checkpoint, open: file, path. Damaged ones are named in a warning. Nothing if there is none; then the second result
-- says what was wrong with the oldest that was looked at, or is nil.
local function open_sound(self)
  local tried, problem = {}, nil
  local list = self.checkpoints
  if self._latest and list[#list] ~= self._latest then list[#list + 1] = self._latest end
  for i = #list, 1, -1 do
    local path = list[i]
    if not tried[path] then
      tried[path] = true
      local ok, file = errors.attempt(checkpoints.open, path)
      if ok then return file, path end
      problem = file
      log.warning("the checkpoint %s cannot be used%s: %s", path, i > 1 and ", the previous one is taken" or "", tostring(file))
    end
  end
  return nil, problem
end

-- Restores the newest sound checkpoint and returns its path; nil if there is none.
function Manager:_restore_sound()
  self:sync()
  local file, path = open_sound(self)
  if not file then return nil, path end
  local ok, problem = pcall(self.checkpoint._apply, self.checkpoint, file)
  file:close()
  if not ok then error(problem, 0) end
  self._latest = path
  self._last_step = self._step and self._step:item()
  return path
end

-- Restores the newest sound checkpoint and returns its path. Without any checkpoint calls init_fn, if it was given, and returns nil.
function Manager:restore_or_initialize()
  local path, problem = self:_restore_sound()
  if path then return path end
  if problem then raise("%s holds no sound checkpoint; the last one looked at: %s", self.directory, problem) end
  if self._init then self._init() end
  return nil
end

-- Deletes all checkpoints, the folder's file, and the folder if nothing else is in it.
function Manager:_delete_all()
  local ok, problem = pcall(self.sync, self)
  if not ok then log.warning("%s", problem) end
  os.remove(directory.state_file(self.directory))
  for _, entry in ipairs(self._entries) do os.remove(directory.file_of(entry.path)) end
  if self._latest then os.remove(directory.file_of(self._latest)) end
  C.flow_remove_abandoned(self.directory)
  os.remove(self.directory)      -- only when it is empty
  self._entries, self._latest = {}, false
end

return manager
