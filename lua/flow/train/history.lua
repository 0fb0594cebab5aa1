-- history.lua: the results of every epoch; fit adds one if its caller gave none, and returns it.

local errors = require "flow.errors"
local callbacks = require "flow.train.callback"
local printed = require "flow.classes.printed"
local takes = require("flow.signature").takes

-- history.interrupted: whether Ctrl-C, on this worker or another, ended the fit early.
-- history.history.loss[i], history.epoch[i]; history.epochs.val_loss[i] is the epoch of history.history.val_loss[i], which
-- differs if a value is not computed in every epoch (validation_freq).
local History = callbacks.stock("History")
takes ""
function History:init()
  self.history, self.epoch, self.epochs, self.interrupted = printed {}, printed {}, printed {}, false
end
function History:on_train_begin()
  self.history, self.epoch, self.epochs, self.interrupted = printed {}, printed {}, printed {}, false
end
-- Values are kept as they are in the logs, whatever callbacks before it have put there.
function History:on_epoch_end(epoch, logs)
  if type(epoch) ~= "number" or type(logs or {}) ~= "table" then
    errors.raise("History:on_epoch_end takes the number of an epoch and a table of its values, got %s",
      errors.describe(type(epoch) ~= "number" and epoch or logs))
  end
  self.epoch[#self.epoch + 1] = epoch
  for key, value in pairs(logs or {}) do
    self.history[key], self.epochs[key] = self.history[key] or printed {}, self.epochs[key] or printed {}
    table.insert(self.history[key], value)
    table.insert(self.epochs[key], epoch)
  end
end

-- history:plot("history.svg" [, options]) writes a picture; without a file the curves come as text in the terminal, and are returned.
takes("file?: path, { title?, metrics?, width?, height?, yscale? }", true)
function History:plot(file, options, extra)
  return require("flow.plot").history(self, file, options, extra)
end

-- For backups: a run that goes on has the epochs before it in its History.
function History:get_state()
  return { history = self.history, epoch = self.epoch, epochs = self.epochs }
end
function History:set_state(state)
  local function list(name, value)
    if type(value) ~= "table" then errors.raise("History:set_state: %s is a table, got %s", name, errors.describe(value)) end
    return printed(value)
  end
  self.history, self.epoch = list("history", state.history), list("epoch", state.epoch)
  self.epochs = list("epochs", state.epochs or {})
  for _, lists in ipairs { self.history, self.epochs } do
    for name, values in pairs(lists) do list(tostring(name), values) end
  end
end

return History
