/** Lets other plugins send mails by the server of `console.smtp`. */
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../core/contract/host-tools.ts';
import type { Mailer } from '../common/domain/admin/alerts.ts';
import { openMailer, type SmtpSettings } from './people/mail.ts';

export class Mailers {
  #settings: SmtpSettings;
  readonly #log: Log;
  #opened: ReturnType<typeof openMailer> | undefined;

  constructor(settings: SmtpSettings, log: Log) {
    this.#settings = settings;
    this.#log = log;
  }

  /** undefined: no mail is sent. */
  find(): Mailer | undefined {
    if (this.#settings.host === '') return undefined;
    return {
      send: async (mail) => {
        this.#opened ??= openMailer(this.#settings, this.#log);
        await (await this.#opened).deliver(mail);
      },
    };
  }

  use(settings: SmtpSettings): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#settings = settings;
    void this.close();
  }

  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await (await opened?.catch(() => undefined))?.close();
  }
}
