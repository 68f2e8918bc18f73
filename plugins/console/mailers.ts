/** Lets other plugins send mails by the server of `console.smtp`. */
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../core/contract/host-tools.ts';
import type { Mailer } from '../common/domain/admin/alerts.ts';
import { openMailer, type SmtpSettings } from './people/mail.ts';

export class Mailers {
  #settings: SmtpSettings;
  #foot: string;
  readonly #log: Log;
  #opened: ReturnType<typeof openMailer> | undefined;

  constructor(settings: SmtpSettings, foot: string, log: Log) {
    this.#settings = settings;
    this.#foot = foot;
    this.#log = log;
  }

  /** undefined: no mail is sent. */
  find(): Mailer | undefined {
    if (this.#settings.host === '') return undefined;
    return {
      send: async (mail) => {
        this.#opened ??= openMailer(this.#settings, this.#log, this.#foot);
        await (await this.#opened).deliver(mail);
      },
    };
  }

  use(settings: SmtpSettings, foot: string): void {
    if (foot === this.#foot && isDeepStrictEqual(settings, this.#settings)) return;
    this.#settings = settings;
    this.#foot = foot;
    void this.close();
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await (await opened?.catch(() => undefined))?.close();
  }
}
