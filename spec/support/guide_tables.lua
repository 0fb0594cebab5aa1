-- guide_tables.lua: the tables of lua/guide/16-keras-classes.md, made from the library's own records. They are between
-- <!-- table NAME --> and <!-- end -->. After adding a layer, loss, metric, optimizer or schedule:
--   flowlua spec/support/guide_tables.lua lua/guide/16-keras-classes.md
local tables = {}

local flow = require "flow"
local native = require "flow.ffi"
local camel = require("flow.names").camel
local C = native.C

-- What is the same everywhere, or is refused unless it has its default.
local LEFT_OUT = { trainable = true, dtype = true, data_format = true, sparse = true, ragged = true, optional = true, name = true,
                   activity_regularizer = true }
local EVERY_OPTIMIZER = { clipnorm = true, clipvalue = true, global_clipnorm = true, use_ema = true, ema_momentum = true,
                          ema_overwrite_frequency = true, loss_scale_factor = true, gradient_accumulation_steps = true }

local function text(pointer) return pointer ~= nil and native.string(pointer) or nil end

-- "units, use_bias = true": a default of null is not shown.
local function arguments(count, name, default, without)
  local list = {}
  for i = 0, count - 1 do
    local argument, value = text(name(i)), text(default(i))
    if not LEFT_OUT[argument] and not without[argument] then
      if value == "null" or value == nil then value = ""
      elseif value:find(",") then value = " = { " .. value:gsub(",", ", ") .. " }"
      elseif tonumber(value) or value == "true" or value == "false" then value = " = " .. value
      else value = (" = %q"):format(value) end
      list[#list + 1] = argument .. value
    end
  end
  return table.concat(list, ", ")
end

local function row(...)
  local cells = { ... }
  for i, cell in ipairs(cells) do cells[i] = cell:gsub("|", "\\|") end
  return ("| " .. table.concat(cells, " | ") .. " |"):gsub("%s+|", " |")
end

local function quoted(name) return "`" .. name .. "`" end

function tables.layers()
  local lines, found, index = { "| layer | arguments | result |", "|---|---|---|" }, {}, 0
  while C.flow_layer_class_name(index) ~= nil do
    local i, name = index, text(C.flow_layer_class_name(index))
    found[name] = true
    lines[#lines + 1] = row(quoted(name), arguments(C.flow_layer_class_argument_count(i),
      function(argument) return C.flow_layer_class_argument(i, argument) end,
      function(argument) return C.flow_layer_class_argument_default(i, argument) end, {}), text(C.flow_layer_class_doc(i)))
    index = index + 1
  end
  for _, name in ipairs(flow.layers._names_in_lua()) do found[name], found[#found + 1] = true, name end
  for name in pairs(flow.layers) do      -- those that are written in Lua
    if type(name) == "string" and name:find("^%u") and not found[name] and name ~= "Layer" and name ~= "Input" then
      found[#found + 1] = name
    end
  end
  table.sort(found)
  for _, name in ipairs(found) do lines[#lines + 1] = row(quoted(name), "", "") end
  return lines
end

function tables.optimizers()
  local lines, index = { "| optimizer | arguments |", "|---|---|" }, 0
  while C.flow_optimizer_class_name(index) ~= nil do
    local i, name = index, text(C.flow_optimizer_class_name(index))
    lines[#lines + 1] = row(quoted(name), arguments(C.flow_optimizer_class_argument_count(i),
      function(argument) return C.flow_optimizer_class_argument(i, argument) end,
      function(argument) return C.flow_optimizer_class_argument_default(i, argument) end, EVERY_OPTIMIZER))
    index = index + 1
  end
  local in_lua = {}
  for name in pairs(require("flow.reference.names").of(flow.optimizers)) do
    if type(flow.optimizers[name]) == "table" and rawget(flow.optimizers[name], "of_keras") then in_lua[#in_lua + 1] = name end
  end
  table.sort(in_lua)
  for _, name in ipairs(in_lua) do
    local class, list = flow.optimizers[name], {}
    for _, parameter in ipairs(require("flow.signature").of(class).positional) do
      if not EVERY_OPTIMIZER[parameter.name] then
        local value = class.defaults[parameter.name]
        list[#list + 1] = parameter.name .. (value ~= nil and (" = %s"):format(type(value) == "table" and "{}" or tostring(value)) or "")
      end
    end
    lines[#lines + 1] = row(quoted(name), table.concat(list, ", "))
  end
  return lines
end

function tables.schedules()
  local lines = { "| schedule | arguments |", "|---|---|" }
  for i = 0, C.flow_schedule_class_count() - 1 do
    lines[#lines + 1] = row(quoted(text(C.flow_schedule_class_name(i))), arguments(C.flow_schedule_class_argument_count(i),
      function(argument) return C.flow_schedule_class_argument(i, argument) end, function() end, {}))
  end
  return lines
end

local function names(name)
  local list, index = {}, 0
  while name(index) ~= nil do
    list[#list + 1] = text(name(index))
    index = index + 1
  end
  return list
end

function tables.losses()
  local lines = { "| loss | class |", "|---|---|" }
  for _, name in ipairs(names(C.flow_loss_name)) do
    local class = camel(name, C.flow_loss_find)
    lines[#lines + 1] = row(quoted(name), class and quoted(class) or "")
  end
  for _, record in ipairs(require "flow.train.batch_losses") do lines[#lines + 1] = row(quoted(record.name), quoted(record.class_name)) end
  return lines
end

function tables.metrics()
  local lines, losses, found = { "| metric | |", "|---|---|" }, {}, {}
  for _, name in ipairs(names(C.flow_loss_name)) do losses[name] = true end
  for _, name in ipairs(names(C.flow_metric_name)) do
    if not losses[name] then
      local class = camel(name, C.flow_metric_find)
      found[class] = true
      lines[#lines + 1] = row(quoted(class), ('or "%s"'):format(name))
    end
  end
  local classes = {}
  for name in pairs(require("flow.reference.names").of(flow.metrics)) do
    local is_loss = C.flow_loss_find(name) >= 0
    if name:find("^%u") and not found[name] and not is_loss and name ~= "Metric" then classes[#classes + 1] = name end
  end
  table.sort(classes)
  for _, name in ipairs(classes) do lines[#lines + 1] = row(quoted(name), "") end
  return lines
end

-- The chapter with the tables as they should be.
function tables.fill(chapter)
  return (chapter:gsub("(<!%-%- table (%l+) %-%->\n).-\n(<!%-%- end %-%->)", function(first, name, last)
    return first .. "\n" .. table.concat(tables[name](), "\n") .. "\n\n" .. last
  end))
end

if arg and arg[0] and arg[0]:find("spec/support/guide_tables%.lua$") then
  local file = assert(io.open(arg[1], "rb"))
  local chapter = file:read("*a")
  file:close()
  local filled = tables.fill(chapter)
  file = assert(io.open(arg[1], "wb"))
  file:write(filled)
  return file:close()
end
return tables
