-- ownership.lua: which strategy a model belongs to: the one in whose scope it was made. What is trained must have been made there, too:
-- only then all workers began with the same values.

local errors = require "flow.errors"
local object = require "flow.object"
local placement = require "flow.placement"

local raise = errors.raise
local ownership = {}

local function scope_of(p)
  return p and ("in the scope of %s"):format(tostring(rawget(p, "strategy"))) or "outside of all scopes"
end

-- The first layer with trainable variables that were made elsewhere than at p (false: outside of all scopes), and where.
local function stranger(layer, p)
  local built_in = rawget(layer, "_built_in")
  if built_in ~= nil and built_in ~= p and #layer.trainable_variables > 0 then return layer, built_in end
  for _, child in ipairs(layer._children) do
    local found, where = stranger(child, p)
    if found then return found, where end
  end
end

local HOW = "make and compile the model in one scope: strategy.scope(function() model = ...; model:compile { ... } end)"

-- Raises unless a model may do `what` here: it and what it trains belong to the strategy whose scope is open, if one is.
function ownership.check(model, what)
  local own, here = rawget(model, "_placement") or false, placement.current() or false
  if here and here ~= own then
    raise("%s was made %s, it cannot %s %s; %s", object.title(model), scope_of(own), what, scope_of(here), HOW)
  end
  if not own then return end
  if rawget(own, "closed") then raise("%s: %s: the strategy in whose scope the model was made was closed", object.title(model), what) end
  local layer, where = stranger(model, own)
  if layer then
    raise("%s: %s: the variables of %s were not created %s as the model was, but %s; %s", object.title(model), what,
      object.title(layer), scope_of(own), scope_of(where), HOW)
  end
end

return ownership
