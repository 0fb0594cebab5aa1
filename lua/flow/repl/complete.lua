-- complete.lua: what Tab gives at the prompt: globals, fields after a dot, methods after a colon, names of parameters inside of a call,
-- names of layers, losses, metrics and optimizers inside of quotes, else paths. No function is called but those by which an object answers
-- for its fields (__index): a module of flow's is loaded so when it is named.
--
-- editor.lua calls words() for each Tab with the word before the cursor and what is before that, back to the beginning of the entry, which
-- may have several lines.

local native = require "flow.ffi"
local names = require "flow.reference.names"

local C = native.C

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or",
  "repeat", "return", "then", "true", "until", "while" }

local complete = { flow = nil }      -- what require "flow" returns; its init.lua sets it

-- The value of a path such as flow.layers or model; nil if it has none, or if asking for it raises. A ":" separates names as "." does.
local function resolve(path)
  local value
  local first = true
  for name in path:gmatch("[%a_][%w_]*") do
    if first then
      value = rawget(_G, name)
      if value == nil and name == "flow" then value = complete.flow end
      first = false
    else
      local ok, inner = pcall(function() return value[name] end)
      if not ok then return nil end
      value = inner
    end
    if value == nil then return nil end
  end
  return value
end

local sorted = require("flow.names").sorted

---- where the cursor is -------------------------------------------------------------------------------------------------------------

-- The text before the word as { quote =, callee =, option = }: quote is the character of an open quote, callee what is called by the
-- innermost open bracket, or by the one around it where that is a table, option the name before an = at the end; in_table: the innermost
-- open bracket is one of a table; after_bracket: the text ends with a bracket or a comma. Comments and long strings are read as code, so
-- brackets in them may mislead it: then the list is another one, and nothing worse.
local function context_of(before)
  local open, quote, i = {}, nil, 1
  while i <= #before do
    local c = before:sub(i, i)
    if quote then
      if c == "\\" then i = i + 1 elseif c == quote then quote = nil end
    elseif c == '"' or c == "'" then
      quote = c
    elseif c == "(" or c == "{" then
      open[#open + 1] = { c, before:sub(1, i - 1) }
    elseif c == ")" or c == "}" then
      open[#open] = nil
    end
    i = i + 1
  end
  local found = { quote = quote }
  local last = open[#open]
  local function callee(text) return text:match("([%a_][%w_%.]*:?[%w_]*)%s*$") end
  if last then
    found.callee = callee(last[2])
    if not found.callee and last[1] == "{" and #open > 1 and open[#open - 1][1] == "(" then
      found.callee = callee(open[#open - 1][2])
    end
    found.in_table = last[1] == "{"
  end
  local head = quote and before:match("^(.*)[\"']") or before
  found.option = head:match("([%a_][%w_]*)%s*=%s*{?%s*$")
  found.after_bracket = before:match("[%({,]%s*$") ~= nil
  return found
end

---- lists ---------------------------------------------------------------------------------------------------------------------------

-- Adds the names of a list that begin with the prefix to found, as keys. format: what a name becomes, such as "%s = ", or nil.
local function of_prefix(found, list, prefix, format)
  for _, name in ipairs(list) do
    if name:sub(1, #prefix) == prefix then found[format and format:format(name) or name] = true end
  end
end

-- The names that an index from 0 on leads to, up to NULL.
local function records(name_at)
  local list, index = {}, 0
  while name_at(index) ~= nil do
    list[#list + 1] = native.string(name_at(index))
    index = index + 1
  end
  return list
end

-- What may be in quotes for a parameter.
local CHOICES = {
  loss = function() return records(C.flow_loss_name) end,
  metrics = function()
    local list = records(C.flow_metric_name)
    list[#list + 1] = "accuracy"
    return list
  end,
  optimizer = function()
    local list = records(C.flow_optimizer_class_name)
    for i, name in ipairs(list) do list[i] = name:lower() end
    return list
  end,
  activation = function()
    local list = {}
    for _, name in ipairs { "linear", "relu", "sigmoid", "tanh", "softmax", "gelu", "elu", "selu", "silu", "swish", "softplus", "softsign",
      "exponential", "leaky_relu", "relu6", "hard_sigmoid", "hard_silu", "mish", "log_softmax", "celu", "hard_tanh", "log_sigmoid" } do
      if C.flow_activation_known(name) ~= 0 then list[#list + 1] = name end
    end
    return list
  end,
  padding = function() return { "valid", "same" } end,
  dtype = function() return sorted(native.dtypes) end,
  device = function() return { "cpu", "cpu:0", "gpu:0" } end,
  monitor = function() return { "loss", "val_loss", "accuracy", "val_accuracy" } end,
}
CHOICES.weighted_metrics = CHOICES.metrics

-- The files and folders, these with a / at the end, whose paths begin with the prefix; hidden ones only where their name has begun.
local function paths(prefix)
  local found, folder, start = {}, prefix:match("^(.*/)") or "", prefix:match("[^/]*$")
  local ok, list = pcall(function() return complete.flow.io.listdir(folder == "" and "." or folder) end)
  for _, name in ipairs(ok and list or {}) do
    if name:sub(1, #start) == start and (start ~= "" or name:sub(1, 1) ~= ".") then
      local path = folder .. name
      local is_folder = select(2, pcall(function() return complete.flow.io.isdir(path) end))
      found[path .. (is_folder == true and "/" or "")] = true
    end
  end
  return sorted(found)
end

---- completion ----------------------------------------------------------------------------------------------------------------------

-- The sorted list of what the word may become, each entry a whole word. before: what is before it in the entry. globals: names that are
-- known besides _G's, as keys.
function complete.words(word, before, globals)
  before = before or ""
  local context = context_of(before)
  if context.quote then
    local choices = context.option and CHOICES[context.option]
    if choices and not word:find("/", 1, true) then
      local found = {}
      of_prefix(found, choices(), word)
      return sorted(found)
    end
    if before:find("help%s*%(?%s*[\"']$") then return complete.topics(word) end
    return paths(word)
  end
  if before:find("^%s*%?$") or word:find("^%?") then return complete.topics(word) end
  local path, separator, prefix = word:match("^(.-)([.:]?)([%w_]*)$")
  local found = {}
  if separator == "" and path ~= "" then return {} end
  if path == "" then
    local callee = context.callee and resolve(context.callee)
    local parameters = callee and names.parameters(callee)
    if parameters and (context.in_table or prefix ~= "") and (context.after_bracket or prefix ~= "") then
      of_prefix(found, parameters, prefix, context.in_table and "%s = " or nil)
      if not context.in_table then found = {} end
    end
    if prefix ~= "" or not next(found) then
      of_prefix(found, KEYWORDS, prefix)
      for _, list in ipairs { _G, globals or {} } do
        for name in pairs(list) do
          local is_shown = type(name) == "string" and (not name:find("^_") or prefix:find("^_"))
          if is_shown and name:sub(1, #prefix) == prefix then found[name] = true end
        end
      end
    end
    return sorted(found)
  end
  if not path:find("^[%a_][%w_%.]*$") then return {} end
  local value = resolve(path)
  if value == nil then return {} end
  for name, kind in pairs(names.of(value)) do
    local is_shown = separator == "." and (kind ~= names.METHOD or names.is_class(value)) or separator == ":" and kind == names.METHOD
    if is_shown and name:sub(1, #prefix) == prefix then found[path .. separator .. name] = true end
  end
  return sorted(found)
end

-- Names that help knows, sorted; a ? before the prefix stays before each.
function complete.topics(prefix)
  local mark, start = prefix:match("^(%??)(.*)$")
  local found, reference = {}, require "flow.reference"
  for _, item in ipairs(reference.all()) do
    for _, name in ipairs(item.names) do
      if name:sub(1, #start) == start then found[mark .. name] = true end
    end
  end
  return sorted(found)
end

return complete
