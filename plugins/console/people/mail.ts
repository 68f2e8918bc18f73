/** Mails, sent in the background: the response time does not reveal whether an address is known. */
import type { Log } from '../../../core/contract/host-tools.ts';

export interface SmtpSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly from: string;
  /** `tls`: from the first byte. `starttls`: or nothing is sent. `none`: for a server on the same machine. */
  readonly encryption: 'tls' | 'starttls' | 'none';
}

export interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Where its people say that they want no more of its kind; absent: such mails are always wanted. */
  readonly unsubscribe?: string | undefined;
}

export interface Mailer {
  /** Never throws; what does not go out is logged without its text. */
  send(mail: Mail): void;
  /** Rejects if the mail is not sent. */
  deliver(mail: Mail): Promise<void>;
  /** Resolves when all pending mails were sent. */
  close(): Promise<void>;
}

const mostWaiting = 200;
const timeoutMs = 15_000;

/** `foot` stands below the text of every mail. */
export async function openMailer(settings: SmtpSettings, log: Log, foot = ''): Promise<Mailer> {
  const { host, port, user, password, from, encryption } = settings;
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    host,
    port,
    secure: encryption === 'tls',
    requireTLS: encryption === 'starttls',
    ignoreTLS: encryption === 'none',
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(user === '' ? {} : { auth: { user, pass: password } }),
  });
  const waiting = new Set<Promise<void>>();
  return {
    send({ to, subject, text }) {
      if (waiting.size >= mostWaiting) return void log.warn({ subject }, 'too many mails wait: one was not sent');
      const sending = transport
        .sendMail({ from, to, subject, text: text + foot })
        .then(() => undefined)
        .catch((error: unknown) => log.error({ error, subject }, 'a mail was not sent'))
        .finally(() => waiting.delete(sending));
      waiting.add(sending);
    },
    async deliver({ to, subject, text, unsubscribe: url }) {
      const list = url === undefined ? {} : { list: { unsubscribe: url } };
      await transport.sendMail({ from, to, subject, text: text + foot, ...list });
    },
    async close() {
      await Promise.all(waiting);
      transport.close();
    },
  };
}

export const words = {
  verify: (gateway: string, link: string): Omit<Mail, 'to'> => ({
    subject: `Confirm your address for ${gateway}`,
    text: `Somebody, hopefully you, has signed up to ${gateway} with this address.\n\nConfirm it here:\n${link}\n\nIf it was not you, do nothing.\n`,
  }),
  reset: (gateway: string, link: string): Omit<Mail, 'to'> => ({
    subject: `Set a new password for ${gateway}`,
    text: `Here you can set a new password for ${gateway}, once, within a day:\n${link}\n\nIf you did not ask for it, do nothing: your password stays as it is.\n`,
  }),
  join: (gateway: string, link: string): Omit<Mail, 'to'> => ({
    subject: `You are invited to ${gateway}`,
    text: `You can sign in to ${gateway} here, with the account of your company:\n${link}\n`,
  }),
  member: (
    gateway: string,
    { by, account, link }: { readonly by: string; readonly account: string; readonly link: string },
  ): Omit<Mail, 'to'> => ({
    subject: `${by} invites you to an account at ${gateway}`,
    text: `${by} invites you to the account "${account}" at ${gateway}.\n\nAccept here, within a week:\n${link}\n\nIf you do not expect it, do nothing.\n`,
  }),
  invite: (gateway: string, link: string): Omit<Mail, 'to'> => ({
    subject: `You are invited to ${gateway}`,
    text: `You can sign up to ${gateway} here, within a week:\n${link}\n`,
  }),
};
