/** Weekly times in an operator's notation: `mon-fri 01:00-04:00 06:00-10:00`, in UTC. Pure. */
import type { Hours } from '../common/domain/prices.ts';

const dayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const everyDay = 0b111_1111;
const dayMinutes = 1_440;

/** Throws a RangeError on anything else. A time that passes midnight begins on the named days. */
export function parseHours(text: string): Hours[] {
  const words = text
    .trim()
    .toLowerCase()
    .split(/[\s,]+/);
  const days = words.filter((word) => /^[a-z]/.test(word));
  const times = words.filter((word) => /^\d/.test(word));
  if (times.length === 0 || days.length + times.length < words.length) throw refused(text);
  const mask = days.length === 0 ? everyDay : days.reduce((all, word) => all | daysOf(word, text), 0);
  return times.flatMap((time) => hoursOf(time, mask, text));
}

function daysOf(word: string, text: string): number {
  const [first, last = first] = word.split('-').map((name) => dayNames.indexOf(name));
  if (first === undefined || last === undefined || first < 0 || last < 0) throw refused(text);
  let mask = 0;
  for (let day = first; ; day = (day + 1) % 7) {
    mask |= 1 << day;
    if (day === last) return mask;
  }
}

function hoursOf(time: string, days: number, text: string): Hours[] {
  const match = /^(\d\d):(\d\d)-(\d\d):(\d\d)$/.exec(time);
  if (match === null) throw refused(text);
  const from = Number(match[1]) * 60 + Number(match[2]);
  const until = Number(match[3]) * 60 + Number(match[4]);
  if (Number(match[2]) > 59 || Number(match[4]) > 59 || from >= dayMinutes || until > dayMinutes) throw refused(text);
  if (from < until) return [{ days, from, until }];
  const nextDays = ((days << 1) | (days >> 6)) & everyDay;
  const rest = until === 0 ? [] : [{ days: nextDays, from: 0, until }];
  return [{ days, from, until: dayMinutes }, ...rest];
}

function refused(text: string): RangeError {
  return new RangeError(`hours: "${text}" is not a time such as mon-fri 01:00-04:00, in UTC`);
}
