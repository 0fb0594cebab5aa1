-- checkpoint.lua: flow.train.Checkpoint: the values of models, optimizers, variables and other objects in one file.
--
--   local checkpoint = flow.train.Checkpoint { model = model, step = flow.Variable(0), data = iterator, random = flow.random }
--   local path = checkpoint:save("folder/ckpt")              "folder/ckpt-1"; the file has the ending .safetensors
--   checkpoint:restore(path):assert_consumed()
--
-- Objects may be added later, too: checkpoint.model = model. What a restore has found for them in the file is theirs then.
--
-- The file has a checksum of everything. A restore reads and checks all of it before it changes anything.
--
-- The file is safetensors: a tensor for each variable under its path (object_graph.lua), and for each state a note "state" with its text
-- (state_codec.lua), whose tensors are <path>/state/<n>; for each other name of an object a note "same" with the path that has it. Each
-- save and restore walks over the objects again, so what was added to them, such as an optimizer's slots, takes part.

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local variable = require "flow.tensor.variable"
local tensor = require "flow.tensor"
local tensor_file = require "flow.saving.tensor_file"
local files = require "flow.io"
local log = require "flow.log"
local graph = require "flow.checkpoint.object_graph"
local state = require "flow.state_codec"
local directory = require "flow.checkpoint.directory"
local deferred = require "flow.checkpoint.deferred"
local workers = require "flow.distribute.model_workers"
local saving = require "flow.distribute.saving"

local C, check, raise = native.C, native.check, errors.raise
local checkpoint = {}

local FORMAT = "flowlua-checkpoint-1"
local OF_INNER = "/save_counter$"      -- the path of what a checkpoint inside of another counts: its own saves, which it need not have
local Checkpoint = object.class("Checkpoint")
local Status = object.class("CheckpointStatus")

local function check_name(name)
  if type(name) == "string" and not name:find("[/#%z]") and name ~= "save_counter" then return end
  raise("Checkpoint: the name of an object is a text without / and #, and not save_counter; got %s", errors.describe(name))
end

-- flow.train.Checkpoint { name = object, ... }; Checkpoint(model, { ... }): the model's parts without a name in front, as in Keras.
function checkpoint.Checkpoint(objects, more, extra)
  if extra ~= nil then raise("Checkpoint takes (objects) or (model, objects); %s is one argument too many", errors.describe(extra)) end
  if more ~= nil and (type(more) ~= "table" or getmetatable(more)) then
    raise("Checkpoint: the second argument is a table of names with objects, got %s", errors.describe(more))
  end
  if object.has(objects, "weights") or more then
    local named = { root = objects }
    for name, value in pairs(more or {}) do named[name] = value end
    objects = named
  end
  if objects == nil then objects = {} end
  if type(objects) ~= "table" or getmetatable(objects) then
    raise("Checkpoint takes a table of names with objects, got %s", errors.describe(objects))
  end
  local kept = {}
  for name, value in pairs(objects) do
    check_name(name)
    kept[name] = value
  end
  graph.of(kept)      -- raises now for what cannot be held
  local counter = variable.Variable(tensor.zeros({}, { dtype = "int64" }), { name = "save_counter", trainable = false })
  return object.new(Checkpoint, { objects = kept, save_counter = counter, _last = false })
end

-- What it holds is a field under its name, as in TensorFlow: checkpoint.step:assign_add(1).
function Checkpoint:_missing(key)
  local objects = rawget(self, "objects") or {}
  return objects[key] ~= nil, objects[key], objects
end

-- checkpoint.model = model: another object of that name, nil: none.
function Checkpoint:_set_missing(name, value)
  check_name(name)
  local parts, last = graph.of { [name] = value }, self._last      -- raises for what cannot be held
  self.objects[name] = value
  if last and #last.plan.unused > 0 and value ~= nil then self:_apply_late(name, value)
  elseif last then
    for _, path in ipairs(parts.paths) do
      if not path:find(OF_INNER) then table.insert(last.plan.missing, path) end
    end
  end
  return true
end

-- The objects by their names, with save_counter; also of a checkpoint inside of another one.
function Checkpoint:_held()
  local objects = { save_counter = self.save_counter }
  for name, value in pairs(self.objects) do objects[name] = value end
  return objects
end

-- What they hold now. under: the path at which another checkpoint holds this one, or nil.
local function graph_of(self, under)
  local objects = self:_held()
  if not under then return graph.of(objects) end
  local named = {}
  for name, value in pairs(objects) do named[under .. "/" .. name] = value end
  return graph.of(named)
end

-- What a checkpoint and those inside of it restored last, so that objects which they get later find what is theirs.
local function remember(self, last, seen)
  if seen[self] then return end
  seen[self] = true
  rawset(self, "_last", last)
  for name, value in pairs(self.objects) do
    if object.is(value, Checkpoint) then
      local under = last.under and last.under .. "/" .. name or name
      remember(value, { path = last.path, plan = last.plan, under = under }, seen)
    end
  end
end

-- The other workers that have the same values: of the strategy of its models; without models those that this process works with. nil:
-- there are none.
function Checkpoint:_workers()
  local models = graph_of(self).models
  for _, model in ipairs(models) do
    local worker = workers.of(model)
    if worker then return worker end
  end
  if #models == 0 then return require("flow.distribute.worker").current() end
end

---- writing ---------------------------------------------------------------------------------------------------------------------

-- A tensor_file writer with all values as they are now.
function Checkpoint:_writer()
  local parts, writer = graph_of(self), tensor_file.writer()
  writer:checksums(true)
  writer:note("", "format", FORMAT)
  for _, path in ipairs(parts.paths) do writer:add(path, parts.variables[path]) end
  for _, path in ipairs(names.sorted(parts.same)) do writer:note(path, "same", parts.same[path]) end
  for _, path in ipairs(parts.state_paths) do
    local count = 0
    local function add(value)
      count = count + 1
      local name = path .. "/state/" .. count
      writer:add(name, value)
      return name
    end
    writer:note(path, "state", state.encode(parts.states[path].get(), add, path))
  end
  return writer
end

local function check_path(what, path)
  return files.path(path, what)
end

-- Writes the file, whole or not at all, and makes its folder if it is not there: a script may have removed it since the last save.
local function write(self, path)
  check(C.flow_make_folders((directory.split(path))))
  local writer = self:_writer()
  writer:save(directory.file_of(path), "safetensors")
  writer:close()
end

-- Writes to this very path and returns it. Of several workers the chief writes (distribute/saving.lua).
function Checkpoint:write(path)
  path = check_path("Checkpoint:write", path)
  saving.once(self:_workers(), path, function() write(self, path) end)
  return path
end

-- Saves under the next number and returns that as a text, for the other workers. If the file cannot be written the counter is unchanged.
local function save(self, prefix)
  self.save_counter:assign_add(1)
  local number = self.save_counter:item()
  local path = ("%s-%d"):format(prefix, number)
  local ok, problem = pcall(write, self, path)
  if not ok then
    self.save_counter:assign_sub(1)
    error(problem, 0)
  end
  directory.write((directory.split(prefix)), { latest = path, paths = { path }, times = { os.time() } })
  return ("%d"):format(number)
end

-- Counts save_counter up, writes to <prefix>-<save_counter>, and makes it the only entry of the folder's file `checkpoint`.
function Checkpoint:save(prefix)
  prefix = check_path("Checkpoint:save", prefix)
  local number, mine = saving.once(self:_workers(), prefix, function() return save(self, prefix) end)
  if not mine then self.save_counter:assign(tonumber(number)) end
  return ("%s-%d"):format(prefix, number)
end

---- reading ---------------------------------------------------------------------------------------------------------------------

-- Opens a checkpoint and checks every byte of it. Raises for whatever makes it unusable; the caller closes it.
function checkpoint.open(path)
  local file = tensor_file.open(directory.file_of(path))
  if file:note("", "format") ~= FORMAT or not file:note("", "crc32c") then
    file:close()
    raise("%s is not a checkpoint of flowlua, or it is damaged: the mark of one is missing", directory.file_of(path))
  end
  local ok, problem = pcall(file.verify, file)
  if ok then return file end
  file:close()
  error(problem, 0)
end

-- The other names of what an open file holds: { [path] = path }.
local function other_names(file)
  local same = {}
  for _, note in ipairs(file:notes()) do
    if note.key == "same" then same[note.path] = file:note(note.path, "same") end
  end
  return same
end

-- The slots of an optimizer that was not used yet are made for the variables that the file has slots for.
local function build_optimizers(parts, file)
  local built, same = false, nil
  for path, optimizer in pairs(parts.optimizers) do
    same = same or other_names(file)
    local model = parts.owners[optimizer] or parts.models[1]
    local trainable = model and model.trainable_variables
    local slot = path .. "/" .. #optimizer.variables
    if trainable and #trainable > 0 and file:find(graph.held(same, slot, function(name) return file:find(name) end)) then
      optimizer:build(trainable)
      built = true
    end
  end
  return built
end

local function shape_text(shape) return "{" .. table.concat(shape, ", ") .. "}" end

-- Raises unless a tensor of the file, its dtype and shape, has those of a variable. where: the file's path.
local function check_fit(where, path, dtype, shape, value)
  shape = shape_text(shape)
  if dtype ~= value.dtype or shape ~= shape_text(value.shape) then
    raise("%s: \"%s\" is %s %s in the file, but %s %s in the program: it is a checkpoint of something else", where, path, dtype, shape,
      value.dtype, shape_text(value.shape))
  end
end

-- What of the file belongs to what: values are read, nothing is changed.
local function match(parts, file)
  local plan = { variables = {}, states = {}, missing = {}, unused = {}, same = other_names(file) }
  local used = {}
  for _, path in ipairs(parts.paths) do
    local held = graph.held(plan.same, path, function(name) return file:find(name) end)
    if file:find(held) then
      check_fit(file.path, held, file:dtype(held), file:shape(held), parts.variables[path])
      plan.variables[#plan.variables + 1] = { variable = parts.variables[path], value = file:read(held) }
      plan.some = plan.some or path ~= "save_counter"
      used[held] = true
    elseif not path:find(OF_INNER) then
      plan.missing[#plan.missing + 1] = path
    end
  end
  for _, path in ipairs(parts.state_paths) do
    local held = graph.held(plan.same, path, function(name) return file:note(name, "state") end)
    local text = file:note(held, "state")
    if text then
      local value = state.decode(text, function(name)
        used[name] = true
        return file:read(name)
      end, file.path)
      plan.states[#plan.states + 1] = { set = parts.states[path].set, value = value }
      used["\0" .. held] = true      -- a state may have the path of a variable: zero bytes are in none
    elseif not parts.states[path].optional then
      plan.missing[#plan.missing + 1] = path
    end
  end
  for i = 1, file.count do
    local name = file:name_of(i)
    if not used[name] and not name:find("/state/%d+$") then plan.unused[#plan.unused + 1] = name end
  end
  for _, note in ipairs(file:notes()) do
    local optional = note.path:match "[^/]*$" == graph.DRAWS
    if note.key == "state" and not used["\0" .. note.path] and not optional then plan.unused[#plan.unused + 1] = note.path end
  end
  return plan
end

-- Brings objects to what an open checkpoint says; those that have no variables yet when they get them (deferred.lua). What may refuse comes
-- first: the positions of data.
function Checkpoint:_apply(file)
  local parts, where = graph_of(self), file.path
  if build_optimizers(parts, file) then parts = graph_of(self) end
  local plan = match(parts, file)
  for _, entry in ipairs(plan.states) do entry.set(entry.value) end
  for _, entry in ipairs(plan.variables) do entry.variable:assign(entry.value) end
  deferred.wait(function() return graph_of(self) end, file, plan, function(path, value, own)
    check_fit(where, path, value.dtype, value.shape, own)
  end)
  return plan
end

-- Gives an object that was added after the last restore what the file of that has for it.
function Checkpoint:_apply_late(name, value)
  local last = self._last
  local file = checkpoint.open(last.path)
  local ok, problem = pcall(function()
    build_optimizers(graph_of(self, last.under), file)
    local plan, given = match(graph.of { [last.under and last.under .. "/" .. name or name] = value }, file), {}
    for _, entry in ipairs(plan.states) do entry.set(entry.value) end
    for _, entry in ipairs(plan.variables) do entry.variable:assign(entry.value) end
    for _, path in ipairs(plan.unused) do given[path] = false end
    local left, before = {}, last.plan.unused
    for _, path in ipairs(before) do left[#left + 1] = given[path] == false and path or nil end
    for i = #before, 1, -1 do before[i] = left[i] end      -- the status has this very list
    for _, path in ipairs(plan.missing) do table.insert(last.plan.missing, path) end
  end)
  file:close()
  if not ok then error(problem, 0) end
  remember(self, last, {})
end

-- Gives all workers what the objects of the one hold that speaks, the chief's mostly. All have equal objects and call this at once.
-- Variables that only the others have stay unchanged. Returns those that only this one lacks.
function Checkpoint:_share(worker)
  local speaks = worker.rank == worker.speaker
  local parts, lacking = graph_of(self), {}
  local paths = worker:broadcast_value(speaks and { states = parts.state_paths, variables = parts.paths } or nil, "the checkpoint's names")
  for _, path in ipairs(paths.states) do
    local entry = parts.states[path]
    local value = worker:broadcast_value(speaks and entry.get() or nil, path)
    if not speaks and entry then entry.set(value) end
  end
  for _, path in ipairs(paths.variables) do
    local v = parts.variables[path]
    local value = worker:broadcast_tensor(speaks and v:value() or nil)
    if not v then lacking[#lacking + 1] = path
    elseif not speaks then v:assign(value) end
  end
  return lacking
end

-- The optimizers in it, by their names.
function Checkpoint:_optimizers() return graph_of(self).optimizers end

-- Copies all values; returns a function that brings them back.
function Checkpoint:_hold()
  local parts, values, states = graph_of(self), {}, {}
  for path, v in pairs(parts.variables) do values[path] = v:value() end
  for path, entry in pairs(parts.states) do states[path] = entry.get() end
  return function()
    for path, value in pairs(values) do parts.variables[path]:assign(value) end
    for path, value in pairs(states) do parts.states[path].set(value) end
  end
end

-- The result of a restore: what the file and the program do not have in common.
local function status_of(path, plan)
  local self = object.new(Status, { path = path, missing = plan.missing, unused = plan.unused, _sentinel = false,
                                     _some = plan.some or plan.states and #plan.states > 0 or false })
  if #plan.missing + #plan.unused == 0 then return self end
  local asked = { done = false }
  rawset(self, "_asked", asked)
-- As in TensorFlow: what did not fit is reported if the script has not asked about it before the status is collected.
  rawset(self, "_sentinel", newproxy(true))
  getmetatable(self._sentinel).__gc = function()
    if asked.done or plan.waits or #plan.missing + #plan.unused == 0 then return end
    pcall(log.warning, "%s was restored in part: %d values of the file were not used, %d of the program are not in it; say " ..
      ":expect_partial() if that is meant", path, #plan.unused, #plan.missing)
  end
  return self
end
Status._asked = false

-- Restores what the file and the objects have in common; see Status for the rest. nil: nothing is done.
function Checkpoint:restore(path)
  if path == nil then return status_of("", { missing = {}, unused = {} }) end
  path = check_path("Checkpoint:restore", path)
  local file = checkpoint.open(path)
  local ok, plan = pcall(self._apply, self, file)
  file:close()
  if not ok then error(plan, 0) end
  remember(self, { path = path, plan = plan }, {})
  return status_of(path, plan)
end
Checkpoint.read = Checkpoint.restore

---- how a restore went -------------------------------------------------------------------------------------------------------

local function some(list)
  local text = table.concat(list, ", ", 1, math.min(#list, 8))
  return #list > 8 and text .. (" and %d more"):format(#list - 8) or text
end

function Status:expect_partial()
  if self._asked then self._asked.done = true end
  return self
end

-- Raises unless every variable and state of the program was in the file.
function Status:assert_existing_objects_matched()
  self:expect_partial()
  if #self.missing > 0 then raise("%s: it does not have %s", self.path, some(self.missing)) end
  return self
end

-- Raises if nothing that the program has was in the file.
function Status:assert_nontrivial_match()
  self:expect_partial()
  if self.path ~= "" and not self._some then raise("%s: it has nothing of what the checkpoint holds", self.path) end
  return self
end

-- Raises unless, besides, everything in the file was used.
function Status:assert_consumed()
  self:assert_existing_objects_matched()
  if #self.unused > 0 then raise("%s: nothing in the program takes %s", self.path, some(self.unused)) end
  return self
end

return checkpoint
