-- command_line.lua: flow.args { epochs = 3, job_dir = "" }: a script's command line, typed by the defaults.
--
--   local args = flow.args { epochs = 3, job_dir = "", verbose = false }
--   flowlua train.lua --epochs 5 --job-dir=/tmp/run --verbose data.csv
--   args.epochs == 5, args.verbose == true, args[1] == "data.csv"
--
-- A number stays a number, a boolean is a flag (--verbose, --no-verbose, --verbose=false), - and _ are the same in names.
-- An unknown name is an error; --help prints what there is and ends the script.

local errors = require "flow.errors"
local signature = require "flow.signature"

local raise = errors.raise
local args = signature.module "flow.args"

-- Raised as an error to end a script in order; the flowlua program prints the text and exits with the code.
args.Exit = { __tostring = function(exit) return exit.text end }

-- The text of --help: one line for each default, sorted by name. A flag that is on by default is shown as --no-name.
local function usage(script, defaults)
  local names = require("flow.names").sorted(defaults)
  local lines = { ("Usage: %s [options]"):format(script or "script") }
  for _, name in ipairs(names) do
    local value = defaults[name]
    if type(value) == "boolean" then
      lines[#lines + 1] = ("  --%-20s default: %s"):format(value and "no-" .. name or name, value and "on" or "off")
    else
      lines[#lines + 1] = ("  --%-20s default: %s"):format(name .. " " .. (type(value) == "number" and "NUMBER" or "TEXT"),
        value == "" and '""' or tostring(value))
    end
  end
  return table.concat(lines, "\n")
end

-- The default's name that is meant by the text between -- and =, whichever of - and _ either has; nil: there is none.
local function resolve(name, defaults)
  local key = name:gsub("%-", "_")
  if defaults[key] ~= nil then return key end
  if defaults[name] ~= nil then return name end
  key = name:gsub("_", "-")
  if defaults[key] ~= nil then return key end
end

-- The value of a text for an option whose default is `default`; raises if it cannot be read as one of that type.
local function convert(key, text, default)
  if type(default) == "number" then
    local number = tonumber(text)
    if not number then raise("--%s takes a number, got %q", key, text) end
    return number
  elseif type(default) == "boolean" then
    if text == "true" or text == "1" or text == "yes" then return true end
    if text == "false" or text == "0" or text == "no" then return false end
    raise("--%s is true or false, got %q", key, text)
  end
  return text
end

-- Parses `arguments` (default: the global arg) against the table of defaults, which stays unchanged. Returns a new table: each default's
-- name with its value, and the arguments that are not options as a list. Raises args.Exit for --help, and errors for what is unknown or
-- unreadable.
function args.parse(defaults, arguments)
  if type(defaults) ~= "table" then raise("flow.args takes a table of names with defaults, got %s", errors.describe(defaults)) end
  local result = {}
  for name, value in pairs(defaults) do
    local kind = type(value)
    if type(name) ~= "string" then raise("flow.args: every default has a name, e.g. { epochs = 3 }") end
    if kind ~= "number" and kind ~= "string" and kind ~= "boolean" then
      raise("flow.args: the default of %q is a number, a string or a boolean, got %s", name, errors.describe(value))
    end
    result[name] = value
  end
  if arguments == nil then arguments = rawget(_G, "arg") or {} end
  for i = 1, errors.check_list("flow.args: arguments", arguments) do
    if type(arguments[i]) ~= "string" then raise("flow.args: argument %d is %s, expected a text", i, errors.describe(arguments[i])) end
  end
  local i = 1
  while i <= #arguments do
    local text = arguments[i]
    local name, value = text:match("^%-%-([^=]+)=(.*)$")
    name = name or text:match("^%-%-(.+)$")
    if text == "--" then
      for k = i + 1, #arguments do result[#result + 1] = arguments[k] end
      break
    elseif not name then
      result[#result + 1] = text
    elseif name == "help" and defaults.help == nil then
      error(setmetatable({ text = usage(arguments[0], defaults), code = 0 }, args.Exit), 0)
    else
      local key = resolve(name, defaults)      -- before --no-...: a default may itself begin with no_
      local negated = not key and name:match("^no[-_](.+)$")
      negated = negated and resolve(negated, defaults)
      if negated and type(defaults[negated]) == "boolean" and not value then
        result[negated] = false
      elseif not key then
        raise("unknown option --%s%s", name, errors.suggestion(name:gsub("%-", "_"), defaults))
      elseif type(defaults[key]) == "boolean" and not value then
        result[key] = true
      else
        if not value then
          i = i + 1
          value = arguments[i]
          if value == nil then raise("--%s needs a value, e.g. --%s=%s", name, name, tostring(defaults[key])) end
        end
        result[key] = convert(key, value, defaults[key])
      end
    end
    i = i + 1
  end
  return result
end

return args
