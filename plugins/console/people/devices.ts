/** Devices on which an account has signed in before, and how attempts to sign in are counted with and without one. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { networkOf } from '../../common/kit/network-of.ts';
import { authPath } from './auth-names.ts';
import { type CookieNames, cookieOf } from './cookies.ts';
import type { Throttle } from './throttle.ts';

const keptSeconds = 365 * 86_400;
/** Attempts on one account from all addresses together, in units of what one address may make. */
const addressesPerAccount = 10;

export interface Attempt {
  /** In lower case. */
  readonly email: string;
  readonly address: string;
  /** The request comes from a device on which this account has signed in before. */
  readonly isKnown: boolean;
}

interface DeviceCookie {
  readonly name: string;
  readonly value: string;
  readonly options: {
    readonly path: string;
    readonly maxAge: number;
    readonly httpOnly: true;
    readonly sameSite: 'strict';
    readonly secure: boolean;
  };
}

/** A cookie for each account that has signed in: signed, and of no use without the password. */
export class Devices {
  readonly #names: CookieNames;
  /** The first signs, all are accepted. */
  readonly #secrets: readonly string[];

  constructor(names: CookieNames, secrets: string | readonly string[]) {
    this.#names = names;
    this.#secrets = [secrets].flat();
  }

  knows(email: string, cookieHeader: string | null | undefined): boolean {
    return this.#secrets.some((secret) => {
      const value = cookieOf(cookieHeader, this.#nameFor(email, secret));
      if (value === undefined) return false;
      const given = Buffer.from(value);
      const right = Buffer.from(valueFor(email, secret));
      return given.length === right.length && timingSafeEqual(given, right);
    });
  }

  cookieFor(email: string): DeviceCookie {
    const { secure } = this.#names;
    const options = { path: authPath, maxAge: keptSeconds, httpOnly: true, sameSite: 'strict', secure } as const;
    const secret = this.#secrets[0]!;
    return { name: this.#nameFor(email, secret), value: valueFor(email, secret), options };
  }

  #nameFor(email: string, secret: string): string {
    const { secure, prefix } = this.#names;
    return `${secure ? '__Secure-' : ''}${prefix}.device_${sign(`name ${email.toLowerCase()}`, secret).slice(0, 16)}`;
  }
}

const valueFor = (email: string, secret: string) => sign(`device ${email.toLowerCase()}`, secret);
const sign = (text: string, secret: string) => createHmac('sha256', secret).update(text).digest('hex');

/**
 * Attempts count by account and network together, and by the account alone from all unknown devices. A known device has a
 * count of its own, so that the attempts of others never lock the owner out there.
 */
export class SignInAttempts {
  readonly #throttle: Throttle;
  readonly #most: number;
  readonly #windowMs: number;

  constructor(throttle: Throttle, most: number, windowMs: number) {
    this.#throttle = throttle;
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Counts one; how long to wait, 0: not at all. */
  take(attempt: Attempt): number {
    const waitMs = this.#throttle.take(pairOf(attempt), this.#most, this.#windowMs);
    if (waitMs > 0 || attempt.isKnown) return waitMs;
    return this.#throttle.take(accountOf(attempt), this.#most * addressesPerAccount, this.#windowMs);
  }

  /** It was right: it is forgotten with those before it from this place. */
  forget(attempt: Attempt): void {
    this.#throttle.forget(pairOf(attempt));
  }
}

function pairOf({ email, address, isKnown }: Attempt): string {
  return isKnown ? `device:${email}` : `pair:${email} from ${networkOf(address)}`;
}

function accountOf({ email }: Attempt): string {
  return `account:${email}`;
}
