-- sidecar_evaluator.lua: flow.train.SidecarEvaluator: evaluates the checkpoints of a training that goes on elsewhere, each as it appears:
-- what the task evaluator does beside a cluster. As keras.utils.SidecarEvaluator.
--
--   flow.train.SidecarEvaluator { model = model, data = validation, checkpoint_dir = "checkpoints", max_evaluations = 10,
--                                 callbacks = { flow.callbacks.TensorBoard("logs") } }:start()

local os = require("flow.host").os
local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local files = require "flow.io"
local checkpoints = require "flow.checkpoint.checkpoint"
local directory = require "flow.checkpoint.directory"

local raise = errors.raise
local sidecar = {}
local SidecarEvaluator = object.class("SidecarEvaluator")
local LOOK_EVERY = 0.25      -- seconds

-- flow.train.SidecarEvaluator. most: max_evaluations, or nil for no end; steps, callbacks: of evaluate, or nil.
function sidecar.SidecarEvaluator(model, data, folder, steps, most, callbacks)
  if not object.has(model, "evaluate") or not rawget(model, "_compiled") then
    raise("SidecarEvaluator: model is a model that compile() was called for, got %s", errors.describe(model))
  end
  if data == nil then raise("SidecarEvaluator: there is no data: data is a Dataset, { x, y } or { x, y, sample_weight }") end
  if type(folder) ~= "string" then raise("SidecarEvaluator: checkpoint_dir is a folder, got %s", errors.describe(folder)) end
  return object.new(SidecarEvaluator, {
    model = model, data = data, checkpoint_dir = files.path(folder, "SidecarEvaluator"), steps = steps or false,
    max_evaluations = most or false, callbacks = callbacks or false, evaluations = 0, _seen = {},
  })
end

-- What names are sorted by: numbers in them by their size, so that m-10 comes after m-9.
local function order_of(name)
  return (name:gsub("%d+", function(digits) return ("0"):rep(20 - #digits) .. digits end))
end

-- The next one that was not evaluated yet: what the folder's CheckpointManager names as its newest, or a file of weights that
-- ModelCheckpoint has written there, in the order of their names.
local function find(self)
  if not files.isdir(self.checkpoint_dir) then return nil end
  local latest = directory.latest_checkpoint(self.checkpoint_dir)
  if latest and not self._seen[latest] then return latest, true end
  local names = {}
  for _, name in ipairs(files.listdir(self.checkpoint_dir)) do
    local path = files.join(self.checkpoint_dir, name)
    if name:find "%.weights%.h5$" and not self._seen[path] then names[#names + 1] = path end
  end
  table.sort(names, function(a, b) return order_of(a) < order_of(b) end)
  return names[1], false
end

-- model:evaluate of the data, by `steps` batches, with these callbacks.
local function run(self, steps, callbacks)
  local data, options = self.data, { verbose = 0, steps = steps or nil, callbacks = callbacks or nil }
  local is_list = type(data) == "table" and not getmetatable(data)
  if is_list then options.sample_weight = data[3] end
  return self.model:evaluate(is_list and data[1] or data, is_list and data[2] or nil, options)
end

-- Brings the model to a checkpoint, as far as it has what the model has, or to a file of weights, for which it needs its variables: those
-- of a model without an Input are made by a batch of the data.
local function load(self, path, is_checkpoint)
  if not is_checkpoint then
    if not self.model.built then run(self, 1) end
    return self.model:load_weights(path)
  end
  checkpoints.Checkpoint { model = self.model, optimizer = self.model.optimizer }:restore(path):expect_partial()
end

-- Evaluates the model, which is at this path's state, and says the results.
local function evaluate(self, path)
  local results = run(self, self.steps, self.callbacks)
  self.evaluations = self.evaluations + 1
  local names, parts = {}, {}
  for name in pairs(results) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = ("%s %.4f"):format(name, results[name]) end
  log.info("SidecarEvaluator: %s: %s", path, table.concat(parts, ", "))
end

-- Evaluates checkpoints until max_evaluations are done, or this process is asked to end; returns how many it has evaluated. One that
-- cannot be read any more, since newer ones have taken its place, is left out.
function SidecarEvaluator:start()
  while not native.preempted() and not (self.max_evaluations and self.evaluations >= self.max_evaluations) do
    local path, is_checkpoint = find(self)
    if path then
      self._seen[path] = true
      local ok, problem = errors.attempt(load, self, path, is_checkpoint)
      if ok then evaluate(self, path) else log.warning("SidecarEvaluator: %s is left out: %s", path, tostring(problem)) end
    else
      os.execute(("sleep %g"):format(LOOK_EVERY))
    end
  end
  return self.evaluations
end

return sidecar
