-- py_dataset.lua: flow.utils.PyDataset: batches that a class written in Lua makes by their number, for fit, evaluate and predict.
--
--   local Pairs = flow.utils.PyDataset:extend "Pairs"
--   function Pairs:init(x, y, size) self.x, self.y, self.size = x, y, size end
--   function Pairs:__len__() return math.ceil(self.x.shape[1] / self.size) end
--   function Pairs:__getitem__(index) ... return x, y end                           index counts from 0; x, y or a list of them
--   model:fit(Pairs(x, y, 32), { epochs = 3 })
--
-- Its functions run in the thread that trains; on_epoch_end(), where there is one, when the last batch was made. fit takes the batches in a
-- new order in each epoch, unless shuffle = false.

local errors = require "flow.errors"
local object = require "flow.object"
local elements = require "flow.data.elements"
local structure = require "flow.data.structure"

local raise = errors.raise

local PyDataset = object.open(object.class("PyDataset"))

local IGNORED = { workers = true, use_multiprocessing = true, max_queue_size = true }

-- A class that extends it. Without init() a table of options becomes fields.
function PyDataset.extend(parent, class_name)
  return require "flow.user_class" (parent, class_name, function(class, _, options)
    return object.new(class, { name = options.name })
  end, IGNORED)
end

-- A method of the script's class; raises if it does not have it.
local function method(self, name)
  local f = object.has(self, name) and self[name]
  if not f then raise("%s: it has no method %s", object.class_of(self).name, name) end
  return f
end

-- The number of batches, __len__(): a whole number.
function PyDataset:_count()
  local count = method(self, "__len__")(self)
  if type(count) ~= "number" or count ~= math.floor(count) or count < 1 then
    raise("%s: __len__() returned %s, expected a whole number from 1", object.class_of(self).name, errors.describe(count))
  end
  return count
end

-- Components of batch number index, from 0, and their structure.
local function batch_of(self, index, own)
  local what = object.class_of(self).name
  local values = { method(self, "__getitem__")(self, index) }
  local only = #values == 1 and values[1]
  if type(only) == "table" and not getmetatable(only) and not structure.is_named(only) then values = only end
  if #values == 0 then raise("%s: __getitem__(%d) returned nothing", what, index) end
  return structure.flatten(what, values, own)
end

-- The batches as a Dataset, in order or in a new one in each pass. Their numbers of rows may differ.
function PyDataset:_dataset(shuffles)
  local data = require "flow.data"
  local count = self:_count()
  local values, own = batch_of(self, 0)
  local specs = elements.specs_of_values(values)
  for _, spec in ipairs(specs) do
    if #spec.shape > 0 then spec.shape[1] = -1 end
  end
  local order = data.Dataset.range(count)
  if shuffles then order = order:shuffle(count) end
  return data.transform({ order }, specs, own, count, function(pull, give)
    local left = count
    for number in pull do
      give((batch_of(self, number[1]:item(), own)))
      left = left - 1
      if left == 0 and object.has(self, "on_epoch_end") then self:on_epoch_end() end      -- who counts does not ask for the end
    end
  end)
end

return { PyDataset = PyDataset, is = function(value) return object.is(value, PyDataset) end }
