-- init.lua: the interactive prompt. An expression's values are printed (a trailing ; silences them) and kept as _; input
-- goes on over several lines until it is complete; an error or Ctrl-C returns to the prompt.
--
-- The room: the prompt. May use: nothing.

local native = require "flow.ffi"

local repl = { flow = nil }      -- what the prompt calls flow: set by who loads this room

local MAX_ENTRIES, MAX_DEPTH = 40, 3

local function key_text(key)
  if type(key) == "string" then return key:match("^[%a_][%w_]*$") or ("[%q]"):format(key) end
  return "[" .. tostring(key) .. "]"
end

-- A value as the prompt shows it: plain tables with their content, objects by their tostring.
function repl.show(value, depth, seen)
  depth, seen = depth or 1, seen or {}
  if type(value) == "string" then return depth == 1 and value or ("%q"):format(value) end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return tostring(value) end
  if seen[value] or depth > MAX_DEPTH then return "{...}" end
  seen[value] = true
  local parts, count = {}, #value
  for i = 1, math.min(count, MAX_ENTRIES) do parts[i] = repl.show(value[i], depth + 1, seen) end
  local keys = {}
  for key in pairs(value) do
    if not (type(key) == "number" and key >= 1 and key <= count and key == math.floor(key)) then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    if #parts >= MAX_ENTRIES then break end
    parts[#parts + 1] = key_text(key) .. " = " .. repl.show(value[key], depth + 1, seen)
  end
  if count + #keys > MAX_ENTRIES then parts[#parts + 1] = ("... (%d entries)"):format(count + #keys) end
  seen[value] = nil
  local text = table.concat(parts, ", ")
  if #text > 100 or text:find("\n", 1, true) then
    local indent = ("  "):rep(depth)
    return "{\n" .. indent .. table.concat(parts, ",\n" .. indent) .. "\n" .. ("  "):rep(depth - 1) .. "}"
  end
  return #parts == 0 and "{}" or "{ " .. text .. " }"
end

-- Compiles input. Returns the chunk and whether its values are to be printed, or nil, whether more lines are needed, and
-- the error.
function repl.compile(text)
  local silent = text:match("^(.*);%s*$")
  local expression = loadstring("return " .. (silent or text), "=stdin")
  if expression then return expression, not silent end
  local chunk, message = loadstring(text, "=stdin")
  if chunk then return chunk, false end
  return nil, message:find("'<eof>'", 1, true) ~= nil, message
end

-- Names that the last word of a line may become: globals, fields, methods of tensors.
function repl.complete(word)
  local path, separator, prefix = word:match("^(.-)([.:]?)([%w_]*)$")
  local object = _G
  for name in path:gmatch("[%w_]+") do
    if type(object) ~= "table" then return {} end
    local ok, value = pcall(function(key) return object[key] end, name)
    if not ok then return {} end
    object = value
  end
  local names = {}
  local function add(list)
    for name in pairs(list) do
      if type(name) == "string" and name:sub(1, #prefix) == prefix then names[path .. separator .. name] = true end
    end
  end
  if native.is_tensor(object) then
    add(native.methods)
  elseif type(object) == "table" then
    add(object)
    local metatable = getmetatable(object)
    if metatable and type(metatable.__index) == "table" then add(metatable.__index) end
  end
  local list = {}
  for name in pairs(names) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function traceback(message)
  return tostring(message)
end

-- Runs one complete input; write(text) receives what is to be shown. What was typed is interpreted: compiled loops do not
-- notice Ctrl-C. Functions that it calls are compiled as ever.
function repl.evaluate(chunk, prints, write)
  jit.off(chunk, true)
  local function finish(ok, ...)
    if not ok then
      write(tostring((...)))
      return false
    end
    local count = select("#", ...)
    if count > 0 then _G._ = (...) end
    if prints and count > 0 then
      local parts = {}
      for i = 1, count do parts[i] = repl.show((select(i, ...))) end
      write(table.concat(parts, "\t"))
    end
    return true
  end
  return finish(xpcall(chunk, traceback))
end

-- host: { arm, isatty } as the program gives them, both optional; read(prompt) and write(text) for other front ends.
function repl.run(host, banner)
  local write = host.write or function(text) io.write(text, "\n") io.flush() end
  local editor = not host.read and require "flow.repl.editor"
  local terminal = host.isatty and host.isatty(0)
  local read = host.read
  if not read then
    if terminal then
      editor.open(repl.complete)
      read = editor.read
    else
      read = function() return io.read("*l") end
    end
  end
  if rawget(_G, "flow") == nil then _G.flow = repl.flow end
  if terminal and banner then write(banner .. "\nCtrl-C interrupts, Ctrl-D leaves, an expression shows its value.") end

  local pending = ""
  while true do
    if host.arm then host.arm() end
    local ok, line = pcall(read, pending == "" and "> " or ">> ")
    if not ok then                      -- Ctrl-C at the prompt drops what was typed
      pending = ""
      write("")
    elseif line == nil then
      if native.interrupted() then
        pending = ""
        write("")
      else
        break
      end
    else
      local text = pending == "" and line or pending .. "\n" .. line
      if text:find("%S") then
        local chunk, flag, message = repl.compile(text)
        if chunk then
          if terminal and editor then editor.remember(text) end
          if host.arm then host.arm() end
          repl.evaluate(chunk, flag, write)
          pending = ""
        elseif flag then
          pending = text
        else
          write(message)
          pending = ""
        end
      end
    end
  end
  if terminal and editor then editor.close() end
end

return repl
