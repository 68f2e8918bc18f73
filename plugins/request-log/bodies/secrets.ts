/** Finds secrets in a text: keys and tokens by their form, values by the name in front of them. Pure. */
import { keyPatterns } from '../../common/kit/scrub.ts';
import { markOf } from './media.ts';

const tokenForms: readonly RegExp[] = [
  // Slack's incoming webhooks.
  /\bhooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/+]{20,200}/g,
  // https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
  /\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255})/g,
  // https://docs.gitlab.com/security/tokens/#token-prefixes
  /\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[\w.-]{16,300}/g,
  // npm, PyPI, Hugging Face, DigitalOcean, Docker.
  /\bnpm_[A-Za-z0-9]{20,64}/g,
  /\bpypi-[\w-]{40,512}/g,
  /\bhf_[A-Za-z0-9]{20,64}/g,
  /\bdo[oprt]_v1_[a-f0-9]{40,80}/g,
  /\bdckr_(?:pat|oat)_[\w-]{16,80}/g,
  // Linear, Notion, Postman, Pulumi, Terraform.
  /\blin_(?:api|oauth)_\w{20,80}/g,
  /\b(?:secret_|ntn_)[A-Za-z0-9]{30,80}/g,
  /\bPMAK-[a-f0-9-]{40,80}/g,
  /\bpul-[a-f0-9]{40}/g,
  /\b[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,120}/g,
  // Vault, Fly, Shopify, Doppler.
  /\bhv[sbr]\.[\w-]{20,300}/g,
  /\bfo1_[\w-]{40,80}/g,
  /\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}/g,
  /\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,80}/g,
  // Stripe, Square, SendGrid, Mailgun, Twilio, Telegram, Discord.
  /\b(?:whsec_[A-Za-z0-9+/=]{20,120}|sq0[a-z]{3}-[\w-]{20,60}|SG\.[\w-]{16,64}\.[\w-]{16,100}|key-[a-f0-9]{32}|(?:AC|SK)[a-f0-9]{32})\b/g,
  /\b\d{6,12}:AA[\w-]{32,36}|\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}/g,
  // Google's OAuth tokens and client secrets, age keys, Azure's storage and connection strings.
  /\bya29\.[\w-]{20,2048}|\bGOCSPX-[\w-]{20,60}|\b1\/\/0[\w-]{30,200}|\bAGE-SECRET-KEY-1[A-Z0-9]{40,80}/g,
  /(?<=\b(?:AccountKey|SharedAccessKey|sig)=)[A-Za-z0-9+/%=]{20,200}/g,
];

/** Start inclusive, end exclusive; the replacement, default `***`. */
export type Range = readonly [start: number, end: number, words?: string | undefined];

export interface MaskOptions {
  /** Names of values to mask, in addition to the default ones. */
  readonly names: readonly string[];
  readonly emails: boolean;
  readonly cards: boolean;
}

export const mask = '***';

/** Names of values to mask, without separators; those of `endings` also match as suffixes: `db_password`. */
const usualNames = [
  'passwd',
  'pwd',
  'authorization',
  'proxyauthorization',
  'cookie',
  'setcookie',
  'credential',
  'credentials',
];
const endings = ['password', 'passphrase', 'secret', 'token', 'apikey', 'accesskey', 'secretkey', 'privatekey'];
const endingPattern = new RegExp(`(?:${endings.join('|')})$`);

/** Patterns of credentials, with bounded repetition to avoid backtracking. */
const credentials: readonly RegExp[] = [
  ...keyPatterns,
  /\bBasic\s+[A-Za-z0-9+/=_-]{8,}/gi,
  // JSON Web Tokens: https://www.rfc-editor.org/rfc/rfc7519
  /\beyJ[\w-]{8,4096}\.[\w-]{4,4096}(?:\.[\w-]{0,4096}){0,4}/g,
  // https://www.rfc-editor.org/rfc/rfc7468; a key that was cut has no end line.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  // Passwords inside URLs.
  /(?<=:\/\/)[^\s:@/"']{0,200}:[^\s@/"']{1,500}(?=@)/g,
  /\bA[A-Z]IA[A-Z0-9]{16}\b/g,
  ...tokenForms,
];
const emailPattern = /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}/g;
/** Payment cards have 12 to 19 digits: https://www.iso.org/standard/70484.html */
const cardPattern = /(?<!\d)\d(?:[ -]?\d){11,18}(?!\d)/g;
const wordPattern = /(?<![\w+=-])[\w+=-]{20,}/g;
/** A shorter text contains no secret unless it contains one of these characters. */
const shortestSecret = 'Basic 12345678'.length;
const secretSigns = /[-_:=@\d]/;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Prefixes of ids that protocols use and people search for. */
const idPrefix =
  /^(?:req|msg|resp|gen|call|toolu|tool|file|run|rs|fc|ws|chatcmpl|cmpl|batch|task|item|step|thread)[-_]/;

const dataUrl = /data:([\w.+-]{1,60}\/[\w.+-]{1,60})?(?:;[\w=.+-]{1,60}){0,4};base64,[A-Za-z0-9+/=_%\\-]+/gi;
const bareBase64 = /(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{160,}/g;

/** The patterns of one set of options; compiled once, used for every body. */
export class Secrets {
  readonly #names: ReadonlySet<string>;
  /** A name and the separators between it and its value. */
  readonly #named: RegExp;
  readonly #options: MaskOptions;

  constructor(options: MaskOptions) {
    this.#options = options;
    const names = [...usualNames, ...options.names.map(plainName)].filter((name) => name !== '');
    this.#names = new Set(names);
    const alone = `(?<![\\p{L}\\p{N}])(?:${names.map(loose).join('|')})`;
    this.#named = new RegExp(
      `(?:${endings.map(loose).join('|')}|${alone})\\\\*["'\`]?\\s{0,8}(?:=>|[:=])\\s{0,8}`,
      'giu',
    );
  }

  /** Whether values of this name are masked, however it is written: `apiKey`, `API_KEY`, `x-api-key`. */
  hides(name: string): boolean {
    const plain = plainName(name);
    return this.#names.has(plain) || endingPattern.test(plain);
  }

  /** The text with its secrets replaced. */
  masked(text: string, known: readonly Range[] = []): string {
    if (known.length === 0 && text.length < shortestSecret && !secretSigns.test(text)) return text;
    return without(text, joined([...known, ...this.within(text)]));
  }

  /** Sorted ranges that do not overlap. */
  within(text: string): Range[] {
    const found: Range[] = [];
    const all = (pattern: RegExp, holds: (match: string) => boolean = () => true) => {
      for (const match of text.matchAll(pattern))
        if (holds(match[0])) found.push([match.index, match.index + match[0].length]);
    };
    for (const pattern of credentials) all(pattern);
    all(wordPattern, isRandom);
    for (const match of text.matchAll(dataUrl)) found.push(marked(match, match[1]?.toLowerCase() ?? 'data'));
    for (const match of text.matchAll(bareBase64)) if (isMixed(match[0])) found.push(marked(match, 'base64'));
    if (this.#options.emails) all(emailPattern);
    if (this.#options.cards) all(cardPattern, isCard);
    for (const match of text.matchAll(this.#named)) {
      const start = match.index + match[0].length;
      const end = valueEnd(text, start, headerName.test(match[0]) ? headerValue : bare);
      if (end > start && !isMask.test(text.slice(start, end))) found.push([start, end]);
    }
    return joined(found);
  }
}

const plainName = (name: string): string => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** The name's letters with at most one separator between two of them: `apikey` finds `api_key`. */
const loose = (name: string): string => [...plainName(name)].join('[-_ ]?');

/** Already masked. */
const isMask = /^\\*["'`]?\*{3}\\*["'`]?$/;
const quoted = /\\*["'`]/y;
/** A value without quotes. */
const bare = /[^\s,;&"'`<>}\])]{1,4096}/iy;

/** Values of these headers extend to the end of the line. */
const headerName = /cookie|authorization/i;
const headerValue = /[^\r\n"'`]{1,4096}/y;

/** End of the value that starts here: the matching quote at any level of escaping, else as `unquoted` matches. */
function valueEnd(text: string, start: number, unquoted: RegExp): number {
  quoted.lastIndex = start;
  const quote = quoted.exec(text)?.[0];
  if (quote === undefined) {
    unquoted.lastIndex = start;
    return start + (unquoted.exec(text)?.[0].length ?? 0);
  }
  const from = start + quote.length;
  for (let end = text.indexOf(quote, from); end !== -1; end = text.indexOf(quote, end + 1))
    if (text[end - 1] !== '\\') return end + quote.length;
  return text.length;
}

/** A word that looks random: long, with both letter cases and digits, or hexadecimal. */
function isRandom(word: string): boolean {
  if (uuid.test(word) || idPrefix.test(word)) return false;
  const digits = word.match(/\d/g)?.length ?? 0;
  if (digits < 2) return false;
  if (word.length >= 24 && /[a-z]/.test(word) && /[A-Z]/.test(word)) return true;
  return /^[0-9a-f]{32,}$/i.test(word) || /^[a-z]{2,10}[-_](?=[a-z0-9]*[a-z])[a-z0-9]{16,}$/.test(word);
}

function marked({ 0: run, index }: RegExpExecArray, type: string): Range {
  return [index, index + run.length, markOf(type, run)];
}

function isMixed(run: string): boolean {
  return /\d/.test(run) && /[a-z]/.test(run) && /[A-Z]/.test(run);
}

/** The check digit of ISO/IEC 7812. */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, '');
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const weighted = index % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}

/** Sorts and merges ranges; of two with the same start the longer comes first, and its replacement holds for both. */
function joined(ranges: readonly Range[]): Range[] {
  const ordered = ranges.toSorted((one, other) => one[0] - other[0] || other[1] - one[1]);
  const apart: Range[] = [];
  for (const range of ordered) {
    const last = apart.at(-1);
    if (last === undefined || range[0] >= last[1]) apart.push(range);
    else if (range[1] > last[1]) apart[apart.length - 1] = [last[0], range[1]];
  }
  return apart;
}

function without(text: string, ranges: readonly Range[]): string {
  let masked = '';
  let at = 0;
  for (const [start, end, words = mask] of ranges) {
    masked += text.slice(at, start) + words;
    at = end;
  }
  return masked + text.slice(at);
}
