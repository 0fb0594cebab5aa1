-- callbacks/history.lua: the results of every epoch; fit adds one if its caller gave none, and returns it.

local Callback = require("flow.callbacks").Callback

-- history.history.loss[i], history.epoch[i].
local History = Callback:extend("History")
function History:init()
  self.history, self.epoch = {}, {}
end
function History:on_train_begin()
  self.history, self.epoch = {}, {}
end
function History:on_epoch_end(epoch, logs)
  self.epoch[#self.epoch + 1] = epoch
  for key, value in pairs(logs) do
    self.history[key] = self.history[key] or {}
    table.insert(self.history[key], value)
  end
end
function History:get_state()
  return { history = self.history, epoch = self.epoch }
end
function History:set_state(state)
  self.history, self.epoch = state.history, state.epoch
end

return History
