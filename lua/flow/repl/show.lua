-- show.lua: values as the prompt shows them: plain tables with their content, tensors with what is in them, models by their layers,
-- histories by their epochs, modules by their names, functions by what they take. What a value tells of itself is asked for by its public
-- names only.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local names = require "flow.reference.names"
local style = require "flow.repl.style"

local MAX_ENTRIES, MAX_DEPTH, WIDTH = 40, 3, 100

local show

---- parts ----------------------------------------------------------------------------------------------------------------------

-- A key as it stands in a table's constructor: name, ["a b"], [5].
local function key_text(key)
  if type(key) == "string" then return key:match("^[%a_][%w_]*$") or ("[%q]"):format(key) end
  return "[" .. tostring(key) .. "]"
end

-- The prefix and the words, with commas, in lines of at most WIDTH characters.
local function words(prefix, list)
  local lines, line = {}, prefix
  for i, word in ipairs(list) do
    local piece = " " .. word .. (i < #list and "," or "")
    if #line + #piece > WIDTH then lines[#lines + 1], line = line, " " .. piece else line = line .. piece end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function plural(count, what)
  return ("%d %s%s"):format(count, what, count == 1 and "" or "s")
end

-- 1234567 as 1,234,567; number: whole.
local function with_commas(number)
  local text, found = ("%d"):format(number), 1
  while found > 0 do text, found = text:gsub("^(%-?%d+)(%d%d%d)", "%1,%2") end
  return text
end

---- kinds of values ----------------------------------------------------------------------------------------------------------------

-- The range of a tensor with more than one number; "" where there is nothing to say.
local function statistics(t)
  if t:is_symbolic() or t.dtype == "bool" or t.size < 2 then return "" end
  local x = t:to("cpu", "float64")
  local text = ("min %.5g, max %.5g, mean %.5g"):format(x:min():item(), x:max():item(), x:mean():item())
  if t.dtype:find("float") then text = text .. (", std %.5g"):format(x:std():item()) end
  local finite = t.dtype:find("float") and x:is_finite():to("float64"):sum():item() or t.size
  if finite < t.size then text = text .. (", %d not finite"):format(t.size - finite) end
  return "\n" .. style.of("faint", text)
end

-- The tensor's own text, and below it the statistics, which are left out where computing them fails.
local function show_tensor(t)
  local ok, more = pcall(statistics, t)
  return tostring(t) .. (ok and more or "")
end

-- The first and last epochs of a History, a column for each value.
local SHOWN = 10

local function show_history(history)
  local keys, epochs = {}, history.epoch
  for key in pairs(history.history) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    local va, vb = a:find("^val_") ~= nil, b:find("^val_") ~= nil
    if va ~= vb then return vb end
    return a < b
  end)
  if #epochs == 0 or #keys == 0 then return "History of no epochs: model:fit returns one" end
  local lines = { ("History of %s%s"):format(plural(#epochs, "epoch"), history.interrupted and ", interrupted" or "") }
  local widths, head = {}, "  epoch"
  for i, key in ipairs(keys) do
    widths[i] = math.max(#key, 8)
    head = head .. "  " .. (" "):rep(widths[i] - #key) .. key
  end
  lines[2] = style.of("heading", head)
  for i, epoch in ipairs(epochs) do
    if #epochs > SHOWN and i == SHOWN / 2 + 1 then lines[#lines + 1] = "    ..." end
    if #epochs <= SHOWN or i <= SHOWN / 2 or i > #epochs - SHOWN / 2 then
      local line = ("%7d"):format(epoch)
      for j, key in ipairs(keys) do
        local text = ""
        for n, at in ipairs(history.epochs[key] or {}) do
          if at == epoch then text = ("%.4g"):format(history.history[key][n]) end
        end
        line = line .. "  " .. (" "):rep(widths[j] - #text) .. text
      end
      lines[#lines + 1] = line
    end
  end
  return table.concat(lines, "\n")
end

local function show_dataset(dataset)
  local count = dataset:cardinality()
  local length = count == -1 and "repeats without end" or count == -2 and "length unknown" or plural(count, "element")
  return tostring(dataset) .. ", " .. length
end

local MOST_LAYERS = 30

-- The summary of a small model; of a large one, or one that is not built, a line.
local function show_model(model)
  local head = tostring(model)
  local ok, layers = pcall(function() return model.layers end)
  local counted, parameters = pcall(model.count_params, model)
  if not ok then return head end
  head = head .. ": " .. plural(#layers, "layer")
  if not counted then return head .. ", not built: it has not seen data, and has no layers.Input" end
  if #layers > MOST_LAYERS then return ("%s, %s parameters; :summary() shows them"):format(head, with_commas(parameters)) end
  return (model:summary_text():gsub("%s+$", ""))
end

local function show_layer(layer)
  local text = tostring(layer)
  local ok, count = pcall(layer.count_params, layer)
  if ok then text = ("%s, %s parameter%s"):format(text, with_commas(count), count == 1 and "" or "s") end
  return text
end

-- By the name of a class; a class below it is shown as it is.
local BY_CLASS = { History = show_history, Dataset = show_dataset, Model = show_model, Layer = show_layer }

local function class_of(value)
  local metatable = type(value) == "table" and getmetatable(value)
  return type(metatable) == "table" and rawget(metatable, "class") or nil
end

-- The text of an object of a class that BY_CLASS has, or of one below it; nil: of another class. What fails on the way gives its tostring.
local function show_object(value)
  local class = class_of(value)
  while class do
    if BY_CLASS[class.name] and errors.namespaces[class] then
      local ok, text = pcall(BY_CLASS[class.name], value)
      return ok and text or tostring(value)
    end
    class = class.parent
  end
end

-- What a public function or class takes, and what it does.
local function show_callable(value)
  local record = signature.of(value)
  if not record then return nil end
  local ok, item = pcall(function() return (require("flow.reference").find(value)) end)
  local usage = signature.usage(record)
  local text = (item and ok and item.name or record.title) .. (usage == "no arguments" and "()" or usage)
  if ok and item and item.doc then text = text .. "\n" .. style.of("faint", item.doc) end
  return text
end

local function show_module(value, title)
  local list = require("flow.names").sorted(names.of(value))
  return words(style.of("heading", title) .. ":", list)
end

---- tables ---------------------------------------------------------------------------------------------------------------------------

-- A table without a metatable as its constructor: positions, then keys in order of their texts; on several lines where it is long. seen:
-- the tables around it, which are "{...}" inside of it, as what is deeper than MAX_DEPTH is.
local function show_table(value, depth, seen)
  if seen[value] or depth > MAX_DEPTH then return "{...}" end
  seen[value] = true
  local parts, count = {}, #value
  for i = 1, math.min(count, MAX_ENTRIES) do parts[i] = show(value[i], depth + 1, seen) end
  local keys = {}
  for key in pairs(value) do
    if not (type(key) == "number" and key >= 1 and key <= count and key == math.floor(key)) then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    if #parts >= MAX_ENTRIES then break end
    parts[#parts + 1] = key_text(key) .. " = " .. show(value[key], depth + 1, seen)
  end
  if count + #keys > MAX_ENTRIES then parts[#parts + 1] = ("... (%d entries)"):format(count + #keys) end
  seen[value] = nil
  local text = table.concat(parts, ", ")
  if #text > WIDTH or text:find("\n", 1, true) then
    local indent = ("  "):rep(depth)
    return "{\n" .. indent .. table.concat(parts, ",\n" .. indent) .. "\n" .. ("  "):rep(depth - 1) .. "}"
  end
  return #parts == 0 and "{}" or "{ " .. text .. " }"
end

-- A value as the prompt shows it. depth, seen: of a table in a table, where strings are quoted and objects are one line. Raises what a
-- value's __tostring raises.
function show(value, depth, seen)
  depth, seen = depth or 1, seen or {}
  if type(value) == "string" then return depth == 1 and value or ("%q"):format(value) end
  if depth == 1 then
    if native.is_tensor(value) then return show_tensor(value) end
    if type(value) == "function" or names.is_class(value) then return show_callable(value) or tostring(value) end
    if type(value) == "table" and errors.namespaces[value] then return show_module(value, errors.namespaces[value]) end
    local text = class_of(value) and show_object(value)
    if text then return text end
  end
  if type(value) == "table" and errors.namespaces[value] then return errors.namespaces[value] end
  if type(value) ~= "table" or getmetatable(value) then return tostring(value) end
  return show_table(value, depth, seen)
end

return show
