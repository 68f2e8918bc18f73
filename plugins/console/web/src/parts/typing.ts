/** Whether a key press belongs to a field, a list of choices or a dialog, and so to no shortcut of the page. */

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

export const isElsewhere = (target: EventTarget | null): boolean =>
  isTyping(target) ||
  (target instanceof Element && target.closest('[role=menu], [role=listbox]') !== null) ||
  document.querySelector('[role=dialog]') !== null;
