-- ownership.lua: a model belongs to the strategy in whose scope it was made. The variables that it trains must have been made in that
-- scope, too, since otherwise workers may start from different values. With several workers, a model made outside is adopted or refused.

local native = require "flow.ffi"
local errors = require "flow.errors"
local log = require "flow.log"
local object = require "flow.object"
local placement = require "flow.tensor.placement"
local scopes = require "flow.scopes"

local C, raise = native.C, errors.raise
local ownership = {}

local function scope_of(p)
  return p and ("in the scope of %s"):format(tostring(rawget(p, "strategy"))) or "outside of all scopes"
end

-- The first layer with trainable variables that were made elsewhere than at p (false: outside of all scopes), and where.
local function stranger(layer, p)
  for _, inside in ipairs(layer:_inside()) do
    local built_in = rawget(inside, "_built_in")
    if built_in ~= nil and built_in ~= p and #inside.trainable_variables > 0 then return inside, built_in end
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

local function take_over(layer, p)
  if rawget(layer, "_built_in") == false then rawset(layer, "_built_in", p) end
  for _, child in ipairs(layer._children) do take_over(child, p) end
end

-- Gives a model that was made outside of all scopes to the strategy of this process, which is one of several workers, before it is trained:
-- otherwise each worker would train a different model. All workers make this call.
function ownership.adopt(model, what)
  local p = placement.joined()
  if not p or rawget(model, "_placement") then return end
  log.info("%s: %s was made outside of the scope of %s: all %d workers train it together from here on, from the chief's values (make it in "
    .. "the scope of flow.distribute.OneDeviceStrategy to train it here alone)", what, object.title(model), tostring(p.strategy), p.workers)
  rawset(model, "_placement", p)
  rawset(model, "_device", p.device)
  take_over(model, p)
  model:_forget_steps()
  p.strategy._worker:share_variables(model.weights)
  for _, optimizer in ipairs(model:_optimizers()) do p.strategy._worker:share_variables(optimizer.variables) end
end

-- A model that was made outside of all scopes evaluates and predicts on each worker by itself, all of the data that it is given there, as
-- with tf.distribute: one worker alone may do it, for example the chief with what it has loaded. Said once, since each has its own weights.
function ownership.say_apart(model, what)
  local p = placement.joined()
  if not p or rawget(model, "_placement") or rawget(model, "_said_apart") then return end
  rawset(model, "_said_apart", true)
  log.info("%s: %s was made outside of the scope of %s: this worker computes all of the data by itself, with its own weights (make or load "
    .. "it in the scope to share the work among the %d workers)", what, object.title(model), tostring(p.strategy), p.workers)
end

-- What trains variables by itself on each of several workers is refused, since they would drift apart: not so in a step of fit, in what
-- strategy:run calls, and with a strategy of one device, which says that it is meant.
function ownership.check_update(what)
  local p, here = placement.joined(), placement.current()
  if not p or scopes.own().step then return end
  if here and (here ~= p or C.flow_trace_replicas(native.context) > 1) then return end
  raise("%s: this process is one of the %d workers of %s, and each would train for itself here: use fit, or let strategy:run call the "
    .. "function that does it (flow.distribute.OneDeviceStrategy(\"cpu:0\"):run, if one worker is to train alone)", what, p.workers,
    tostring(p.strategy))
end

return ownership
