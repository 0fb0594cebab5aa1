-- passes.lua: what reads all of a data set: whether its passes end.

local errors = require "flow.errors"
local object = require "flow.object"

local passes = {}

function passes.is_dataset(data)
  return type(data) == "table" and getmetatable(data) and object.has(data, "iter")
end

-- Raises if a pass over a data set would not end, for the call that `what` names. option: what else says where to stop, or nil.
function passes.check_end(what, dataset, option)
  if object.has(dataset, "cardinality") and dataset:cardinality() == -1 then
    errors.raise("%s: the dataset repeats without end: %stake(n) gives a part of it, or call repeat_(n) with a number", what,
      option and ("give %s, or "):format(option) or "")
  end
end

-- The pass of a layer's adapt(). steps: batches that it will take, nil: all; takes_steps: the layer's adapt() has this option.
function passes.adapt(layer, dataset, steps, takes_steps)
  if not steps then passes.check_end(object.title(layer) .. ": adapt()", dataset, takes_steps and "steps") end
  return dataset:iter()
end

return passes
