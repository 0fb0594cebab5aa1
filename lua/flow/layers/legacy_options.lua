-- legacy_options.lua: options of layers under the names that they had in Keras 2, and that Keras 3 still takes: LeakyReLU { alpha = 0.2 }.

local errors = require "flow.errors"

-- Class -> old name -> today's name, or false: Keras takes it and makes nothing of it.
local RENAMED = {
  LeakyReLU = { alpha = "negative_slope" },
  Embedding = { input_length = false },
  LSTM = { implementation = false }, GRU = { implementation = false },
  LSTMCell = { implementation = false }, GRUCell = { implementation = false },
}

-- The options of a layer as the class has them today. known: a list of the names of its parameters. input_dim = n of any layer that has no
-- such parameter is input_shape = { n }.
return function(class_name, known, named)
  local renamed = RENAMED[class_name]
  for old, new in pairs(renamed or {}) do
    local value = named[old]
    if value ~= nil then
      if new and named[new] ~= nil then errors.raise("%s: %s is given twice, as %s and as %s", class_name, new, new, old) end
      named[old] = nil
      if new then named[new] = value end
    end
  end
  if named.input_dim ~= nil then
    for _, name in ipairs(known) do
      if name == "input_dim" then return named end
    end
    named.input_shape, named.input_dim = named.input_shape or { named.input_dim }, nil
  end
  return named
end
