/** Numbers, amounts and times as people read them. Amounts are text and are never made a float. */
import i18next from 'i18next';

const minus = '−';
/** The reader's language, where a caller names none. */
const ofReader = () => i18next.language ?? 'en';

/**
 * Decimal USD text as an amount of sensible digits: cents from one dollar on, four significant digits below it.
 * Digits that are left out are cut, not rounded, so that the shown amount never exceeds the real one.
 */
export function moneyText(usd: string, language = ofReader()): string {
  return amountText(usd, language, cutFraction);
}

/** Every digit that is not a trailing zero, cents at least. */
export function exactMoneyText(usd: string, language = ofReader()): string {
  return amountText(usd, language, (_whole, fraction) => fraction.replace(/0+$/, '').padEnd(2, '0'));
}

function amountText(usd: string, language: string, fractionOf: (whole: string, fraction: string) => string): string {
  const negative = usd.startsWith('-');
  const [whole = '0', fraction = ''] = (negative ? usd.slice(1) : usd).split('.');
  const { numbers, mark, before, after } = styleOf(language);
  const number = `${numbers.format(BigInt(whole))}${mark}${fractionOf(whole, fraction)}`;
  return `${negative ? minus : ''}${before}${number}${after}`;
}

interface AmountStyle {
  readonly numbers: Intl.NumberFormat;
  /** Stands before the decimals. */
  readonly mark: string;
  /** The dollar, on the side where the language has it. */
  readonly before: string;
  readonly after: string;
}
const styles = new Map<string, AmountStyle>();

function styleOf(language: string): AmountStyle {
  const known = styles.get(language);
  if (known !== undefined) return known;
  const dollars = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const;
  const parts = new Intl.NumberFormat(language, dollars).formatToParts(0);
  const isAfter = parts.at(-1)!.type === 'currency';
  const style = {
    numbers: new Intl.NumberFormat(language),
    mark: parts.find(({ type }) => type === 'decimal')?.value ?? '.',
    before: isAfter ? '' : '$',
    after: isAfter ? '\u00a0$' : '',
  };
  styles.set(language, style);
  return style;
}

/** Decimals of a text of the API as the reader writes them: `0.75` is `0,75` in German. */
export const localDecimals = (text: string, language = ofReader()): string =>
  text.replace(/(\d)\.(?=\d)/g, `$1${styleOf(language).mark}`);

/** A formula of the API: its numbers as the reader writes them, its words as they are. */
export const localFormula = (text: string, language = ofReader()): string =>
  text.replace(/(?<![\w.-])(\d+)(?:\.(\d+))?/g, (_, whole: string, decimals?: string) => {
    const { numbers, mark } = styleOf(language);
    return numbers.format(BigInt(whole)) + (decimals === undefined ? '' : mark + decimals);
  });

/** A value inside a sentence: numbers as the reader writes them, texts as they are. */
export const spokenValue = (value: unknown, language: string): unknown =>
  typeof value === 'number' ? new Intl.NumberFormat(language, { maximumFractionDigits: 6 }).format(value) : value;

/** What a reader typed as an amount, as the API writes it; empty: it can be read in two ways, such as `1.000` where decimals have a comma. */
export function typedAmount(text: string, language = ofReader()): string {
  const typed = text.trim();
  if (styleOf(language).mark !== ',') return typed;
  return /\.\d{3}(?!\d)/.test(typed) ? '' : typed.replace(',', '.');
}

function cutFraction(whole: string, fraction: string): string {
  if (/[1-9]/.test(whole)) return fraction.slice(0, 2).padEnd(2, '0');
  const firstDigit = fraction.search(/[1-9]/);
  if (firstDigit === -1) return '00';
  return fraction
    .slice(0, firstDigit + 4)
    .replace(/0+$/, '')
    .padEnd(2, '0');
}

/** A sum shared evenly, for people: exact text to whole nano-dollars, cut. */
export function meanUsd(sum: string, parts: number): string {
  const [whole = '0', fraction = ''] = sum.replace('-', '').split('.');
  const nano = BigInt(whole + fraction.padEnd(9, '0').slice(0, 9)) / BigInt(parts);
  const digits = nano.toString().padStart(10, '0');
  return `${sum.startsWith('-') ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

/** For charts alone, where a float is near enough. */
export const chartNumber = (usd: string): number => Number(usd);

/** `12,345`; from a million on, or where there is little room from ten thousand, `1.2M` and `400K`. */
export function countText(value: number, language = ofReader(), short = false): string {
  return new Intl.NumberFormat(
    language,
    Math.abs(value) >= (short ? 1e4 : 1e6)
      ? { notation: 'compact', maximumFractionDigits: 2 }
      : { maximumFractionDigits: 0 },
  ).format(value);
}

/** A share of a whole as `97.3 %`; a whole of nothing has no share. */
export function shareText(part: number, whole: number, language = ofReader()): string {
  if (whole === 0) return '–';
  return new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 1 }).format(part / whole);
}

/** `420 ms`, `3.2 s`, `2 min 5 s`. */
export function durationText(milliseconds: number | undefined | null, language = ofReader()): string {
  if (milliseconds === undefined || milliseconds === null) return '–';
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000)
    return `${localDecimals((milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1), language)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

/** The rest of a span, in two units: `2d 4h`, `3h 12m`, `4m 09s`. */
export function countdownText(milliseconds: number, language = ofReader()): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const units = [
    ['day', Math.floor(seconds / 86_400)],
    ['hour', Math.floor(seconds / 3600) % 24],
    ['minute', Math.floor(seconds / 60) % 60],
    ['second', seconds % 60],
  ] as const;
  const largest = units.findIndex(([, count]) => count > 0);
  const first = largest === -1 ? 2 : Math.min(largest, 2);
  return units
    .slice(first, first + 2)
    .map(([unit, count]) => {
      // Seconds run: they keep their width.
      const digits = unit === 'second' ? 2 : 1;
      const format = { style: 'unit', unit, unitDisplay: 'narrow', minimumIntegerDigits: digits } as const;
      return new Intl.NumberFormat(language, format).format(count);
    })
    .join(' ');
}

/** `1.5 KB`; bytes are counted in thousands. */
export function bytesText(bytes: number, language = ofReader()): string {
  const unit = bytes >= 1e9 ? 'gigabyte' : bytes >= 1e6 ? 'megabyte' : bytes >= 1000 ? 'kilobyte' : 'byte';
  const size = { gigabyte: 1e9, megabyte: 1e6, kilobyte: 1000, byte: 1 }[unit];
  // The short form of bytes is "143 byte".
  const unitDisplay = unit === 'byte' ? 'long' : 'short';
  const format = new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay, maximumFractionDigits: 1 });
  return format.format(bytes / size);
}

/** The day, the time or both, in the viewer's zone: as much as is needed to know when. */
export function momentText(moment: Date, now: Date, language = ofReader()): string {
  const sameDay = moment.toDateString() === now.toDateString();
  if (sameDay) return new Intl.DateTimeFormat(language, { timeStyle: 'medium', hourCycle: 'h23' }).format(moment);
  const sameYear = moment.getFullYear() === now.getFullYear();
  return new Intl.DateTimeFormat(language, {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(sameYear ? {} : { year: 'numeric' }),
  }).format(moment);
}

/** Everything that is known of a moment, with the zone. */
export function exactMomentText(moment: Date, language = ofReader()): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'full', timeStyle: 'long', hourCycle: 'h23' }).format(moment);
}

/** `3 minutes ago`, `in 2 hours`. */
export function distanceText(moment: Date, now: Date, language = ofReader()): string {
  const seconds = (moment.getTime() - now.getTime()) / 1000;
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });
  const units = [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ] as const;
  for (const [unit, size] of units)
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  return format.format(Math.trunc(seconds), 'second');
}

/** As a field for date and time wants it. */
export function localMinute(moment: Date): string {
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

const pointTime = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const pointDay = { day: 'numeric', month: 'short' } as const;

/** What a bucket of a chart is called: short below the axis, whole beside its values; in the zone of the buckets. */
export function pointText(at: Date, { bucketMs, tz }: { bucketMs: number; tz: string }, language = ofReader()) {
  const text = (parts: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(language, { ...parts, timeZone: tz }).format(at);
  if (bucketMs >= 86_400_000) return { short: text(pointDay), whole: text({ ...pointDay, weekday: 'short' }) };
  const short = bucketMs >= 7_200_000 ? text(pointDay) : text(pointTime);
  return { short, whole: text({ ...pointDay, ...pointTime }) };
}
