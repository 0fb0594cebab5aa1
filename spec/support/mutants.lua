-- mutants.lua: texts of Lua in which one expression is replaced by another: an argument of a call, a value of a table.
local mutants = {}

-- Words after which a bracket begins a value, and is not a call.
local BEFORE_VALUE = { ["and"] = true, ["or"] = true, ["not"] = true, ["return"] = true, ["in"] = true, ["then"] = true, ["else"] = true,
                       ["elseif"] = true, ["while"] = true, ["local"] = true }

-- Where the string or the comment at i ends; nil: there is none.
local function after_text(text, i)
  local level = text:match("^%[(=*)%[", i)
  if level or text:find("^%-%-%[%[", i) then
    local _, last = text:find("]" .. (level or "") .. "]", i, true)
    return (last or #text) + 1, not level
  end
  if text:find("^%-%-", i) then return text:find("\n", i, true) or #text + 1, true end
  local quote = text:match("^[\"']", i)
  if not quote then return nil end
  local k = i + 1
  while k <= #text and text:sub(k, k) ~= quote do k = k + (text:sub(k, k) == "\\" and 2 or 1) end
  return k + 1, false
end

-- The expressions that stand between the commas of calls and tables of a text: { { first byte, last byte }, ... }.
function mutants.places(text)
  local found, open, i, after_value = {}, {}, 1, false
  local function close(last)
    local top = open[#open]
    local blank = top and top.first and text:sub(top.first, last):find "%S"
    if blank then found[#found + 1] = { top.first + blank - 1, last } end
  end
  local function push(first) open[#open + 1] = { first = first } end
  while i <= #text do
    local c = text:sub(i, i)
    local past, is_comment = after_text(text, i)
    local word = not past and text:match("^[%a_][%w_]*", i)
    if past then
      i, after_value = past, after_value and is_comment or not is_comment
    elseif word == "function" then
      local head = text:match("^function%s*[%w_.:]*%s*%b()", i)
      push()
      i, after_value = i + #head, false
    elseif word then
      if word == "do" or word == "if" or word == "repeat" then push() end
      if word == "end" or word == "until" then open[#open] = nil end
      i, after_value = i + #word, not BEFORE_VALUE[word]
    elseif c == "(" or c == "{" or c == "[" then
      push((c ~= "(" or after_value) and i + 1 or nil)
      i, after_value = i + 1, false
    elseif c == ")" or c == "}" or c == "]" then
      close(i - 1)
      open[#open] = nil
      i, after_value = i + 1, true
    elseif c == "," or c == ";" then
      close(i - 1)
      if open[#open] and open[#open].first then open[#open].first = i + 1 end
      i, after_value = i + 1, false
    elseif text:find("^[=~<>]=", i) then
      i, after_value = i + 2, false
    elseif c == "=" then
      if open[#open] and open[#open].first then open[#open].first = i + 1 end
      i, after_value = i + 1, false
    elseif c:find "%d" then
      i, after_value = i + #text:match("^[%w.]+", i), true
    else
      i, after_value = i + 1, c:find "%s" and after_value or false
    end
  end
  return found
end

-- The text with the expression of a place replaced.
function mutants.replaced(text, place, expression)
  return text:sub(1, place[1] - 1) .. expression .. text:sub(place[2] + 1)
end

return mutants
