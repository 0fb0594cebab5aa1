-- callbacks/swap_ema_weights.lua: evaluates with the moving averages of the weights that an optimizer with use_ema keeps; averages and
-- weights change places for that time, so that no memory is needed for a third of them.
--
-- As keras/src/callbacks/swap_ema_weights.py. swapped: whether the model has the averages now, and the optimizer's slots the weights; a
-- backup keeps it, since both are among the variables that it holds.

local errors = require "flow.errors"
local object = require "flow.object"
local callbacks = require "flow.train.callback"
local takes_named = require("flow.signature").takes_named

local SwapEMAWeights = callbacks.stock("SwapEMAWeights")

-- swap_on_epoch: the averages are in the model while epochs end, too, for callbacks that come later in the list, such as ModelCheckpoint.
takes_named "swap_on_epoch: boolean = false"
function SwapEMAWeights:init(given)
  callbacks.keep(self, SwapEMAWeights, given)
  self.swapped = false
end

-- Calls f(variable, average) for all that have one.
local function each_average(self, f)
  local optimizer, found = self:_model().optimizer, false
  for _, v in ipairs(self:_model().trainable_variables) do
    local average = optimizer:_average_of(v)
    if average then f(v, average) end
    found = found or average
  end
  if not found then
    errors.raise("SwapEMAWeights: %s keeps no averages of the model's weights: make it with use_ema = true, and train before evaluating",
      object.title(optimizer))
  end
end

-- Exchanges both unless they are as asked already. An error on the way leaves some exchanged.
local function swap_to(self, swapped)
  if self.swapped == swapped then return end
  each_average(self, function(v, average)
    local weight = v:value()
    v:assign(average:value())
    average:assign(weight)
  end)
  self.swapped = swapped
end

function SwapEMAWeights:on_epoch_begin() swap_to(self, false) end

-- After the last epoch the model keeps the averages. fit ends by setting weights to the optimizer's averages; these are made equal to the
-- model's, so that this changes nothing.
function SwapEMAWeights:on_epoch_end(epoch)
  if not self.swap_on_epoch then return end
  swap_to(self, true)
  if epoch < self.params.epochs - 1 then return end
  each_average(self, function(v, average) average:assign(v:value()) end)      -- with which fit ends
  self.swapped = false
end

function SwapEMAWeights:on_test_begin() swap_to(self, true) end
function SwapEMAWeights:on_test_end() swap_to(self, false) end
function SwapEMAWeights:on_predict_begin() swap_to(self, true) end
function SwapEMAWeights:on_predict_end() swap_to(self, false) end

function SwapEMAWeights:get_state() return { swapped = self.swapped } end
function SwapEMAWeights:set_state(state) self.swapped = state.swapped end

return SwapEMAWeights
