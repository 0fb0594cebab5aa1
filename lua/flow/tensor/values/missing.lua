-- missing.lua: what is said where the value of a tensor is asked for that has none while a function is traced.

local errors = require "flow.errors"
local scopes = require "flow.scopes"

-- Raises, and notes for Dataset:map, which calls the function with values then. what: the attempt, "item()"; places: where the functions
-- begin that are traced just now, the innermost one last.
return function(what, places)
  local where = places[#places]
  scopes.own().needs_values = true
  errors.raise("%s: this tensor has no value while f is traced%s: use flow.where, or run it eagerly", what,
    where and " (" .. where .. ")" or "")
end
