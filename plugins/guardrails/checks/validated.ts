/** The known patterns, with what proves that a match is what it looks like. Pure. */
import { isIPv4, isIPv6 } from 'node:net';
import { table } from '../../../core/contract/table.ts';

export interface KnownPattern {
  readonly kind: string;
  /** In RE2's syntax; an expression of the engine's where no text makes that slow, as each match has few ways and an end. */
  readonly pattern: string | RegExp;
  /** What the text has where the pattern can match: looked for first, as that is many times faster. */
  readonly hint: RegExp;
  /** The part of a match that is one; undefined: none of it. */
  readonly proven: (match: string) => string | undefined;
}

const asIs = (match: string) => match;
const where = (test: (match: string) => boolean) => (match: string) => (test(match) ? match : undefined);

/** One of these is in each text that a known pattern can match. */
export const known = /[\d@:]/;
/** Nothing is in these that a known pattern can match, however they are folded. */
export const plain = /^[\x09-\x0d\x20-\x2f\x3b-\x3f\x41-\x7e]*$/;

export const knownPatterns: Readonly<Record<string, KnownPattern>> = table({
  email: {
    kind: 'EMAIL',
    pattern: String.raw`[\p{L}\p{N}._%+'-]+@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+\p{L}{2,}`,
    hint: /@/,
    proven: asIs,
  },
  card: {
    kind: 'CARD',
    pattern: /[0-9](?:[ -]?[0-9]){12,18}/g,
    hint: /\d(?:[ -]?\d){12}/,
    proven: where((match) => isCard(match.replace(/[ -]/g, ''))),
  },
  iban: {
    kind: 'IBAN',
    pattern: /[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{1,4}){3,8}/gi,
    hint: /[A-Za-z]{2}\d{2}/,
    proven: ibanIn,
  },
  phone: {
    kind: 'PHONE',
    pattern: /(?:\+|00)?[0-9](?:[ ./-]?\(?[0-9]\)?){6,16}|\([0-9]{2,5}\)[ ./-]?[0-9](?:[ ./-]?[0-9]){4,10}/g,
    hint: /\d(?:[ ./()-]{0,3}\d){6}/,
    proven: where(isPhone),
  },
  ip: {
    kind: 'IP',
    pattern: /[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:[0-9]{0,3}(?:\.[0-9]{1,3}){3})?/gi,
    hint: /\d\.\d{1,3}\.\d|:[0-9a-f]{0,4}:/i,
    proven: where((match) => isIPv4(match) || (match.length > 4 && isIPv6(match))),
  },
});

/** Digits alone, by Luhn's formula; of a length and beginning that cards have. */
function isCard(digits: string): boolean {
  if (!/^[2-6]/.test(digits) || /^(\d)\1+$/.test(digits)) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const weighed = index % 2 === 0 ? digit : digit * 2;
    sum += weighed > 9 ? weighed - 9 : weighed;
  }
  return sum % 10 === 0;
}

/** Length by country: https://www.swift.com/standards/data-standards/iban-international-bank-account-number */
const ibanLengths = new Map(
  (
    'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 ' +
    'FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ' +
    'ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ' +
    'ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))] as const),
);

/** A word that follows an IBAN looks like a part of it: its country says where it ends. */
function ibanIn(match: string): string | undefined {
  const length = ibanLengths.get(match.slice(0, 2).toUpperCase());
  let plain = '';
  let end = 0;
  while (length !== undefined && plain.length < length && end < match.length) {
    const sign = match[end++]!;
    if (sign !== ' ' && sign !== '-') plain += sign.toUpperCase();
  }
  if (plain.length !== length) return undefined;
  return remainder(plain.slice(4) + plain.slice(0, 4)) === 1 ? match.slice(0, end) : undefined;
}

/** ISO 7064: letters are numbers from A = 10 on, and the whole is divided by 97. */
function remainder(text: string): number {
  let rest = 0;
  for (const sign of text) {
    const value = Number.parseInt(sign, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest;
}

/** Bare digits are numbers of many things: an international prefix, a leading zero or separators make it a phone number. */
function isPhone(match: string): boolean {
  const digits = match.replace(/\D/g, '');
  if (digits.length < 7 || digits.length > 15) return false;
  if (/^\d{4}([-./])\d{2}\1\d{2}$/.test(match) || isIPv4(match) || /^\d+\.\d+$/.test(match)) return false;
  return /^(?:\+|00?[1-9])/.test(match) || /\d[ ./-]\(?\d|\)/.test(match);
}
