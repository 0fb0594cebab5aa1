-- each.lua: the entries of a tensor along its first axis, one after the other: what ipairs(t) and pairs(t) give, as a loop over a tensor in
-- Python does.

local function following(t, i)
  i = i + 1
  if i <= #t then return i, t[i] end
end

-- Raises where t has no first axis, or a trace does not know its length.
return function(t)
  local _ = #t
  return following, t, 0
end
