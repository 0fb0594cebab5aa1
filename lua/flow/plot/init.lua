-- init.lua: flow.plot: pictures of trainings, models and predictions. Loaded when history:plot, model:plot or flow.plot is first used.
--
-- The room: pictures of models, trainings and predictions. May use: tensor, layers, model.

local errors = require "flow.errors"
local log = require "flow.log"
local io = require "flow.io"

local raise = errors.raise
local signature = require "flow.signature"

local takes = signature.takes
local plot = signature.module "flow.plot"
local internal = signature.internal(plot)

-- The ending of a path, which says how the picture is written; raises, naming the known ones, if it is none of them.
local function ending(what, file, known)
  if type(file) ~= "string" then raise("%s: the file is a path that ends in .%s, got %s", what, known[1], errors.describe(file)) end
  local found = file:match("%.([%w]+)$")
  for _, name in ipairs(known) do
    if found and found:lower() == name then return name end
  end
  raise("%s: %q: pictures are written as .%s files", what, file, table.concat(known, " or ."))
end
internal.ending = ending

-- history:plot("history.svg", { title =, metrics =, width =, height =, yscale = "log" }) writes a picture; history:plot() shows the
-- curves in the terminal and returns what it printed.
takes("history, file?: path, { title?, metrics?, width?, height?, yscale? }", true)
function plot.history(history, file, options, extra)
  if type(file) == "table" and options == nil then file, options = nil, file end
  if extra ~= nil then raise("history:plot takes (file, options); %s is one argument too many", errors.describe(extra)) end
  if file == nil then
    local text = require("flow.plot.terminal").text(history, options)
    log.print("%s", text)
    return text
  end
  ending("history:plot", file, { "svg" })
  io.write(file, require("flow.plot.history").svg(history, options))
end

-- model:plot("model.svg", { show_shapes =, show_dtype =, show_layer_names =, rankdir = "TB", expand_nested = }): the graph of layers,
-- as a picture or, ending in .dot, for Graphviz.
function plot.model(model, file, options)
  local kind = ending("model:plot", file, { "svg", "dot" })
  io.write(file, require("flow.plot.model").text(model, kind, options))
end

-- flow.plot.confusion_matrix(y_true, y_pred, { class_names =, file =, normalize = }) -> the matrix.
function plot.confusion_matrix(y_true, y_pred, options)
  return require("flow.plot.confusion").matrix(y_true, y_pred, options)
end

return plot
