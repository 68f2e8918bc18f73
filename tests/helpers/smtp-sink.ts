/** A mail server that keeps the mails that it gets. */
import { createServer, type Server } from 'node:net';

/** RFC 5321, as much of it as takes a mail. */
export function smtpSink(received: string[]): Server {
  return createServer((socket) => {
    let inMail = false;
    let buffer = '';
    socket.write('220 sink ESMTP\r\n');
    socket.on('data', (chunk) => {
      buffer += chunk.toString();
      for (;;) {
        const end = inMail ? buffer.indexOf('\r\n.\r\n') : buffer.indexOf('\r\n');
        if (end < 0) return;
        const text = buffer.slice(0, end);
        buffer = buffer.slice(end + (inMail ? 5 : 2));
        if (inMail) received.push(text);
        const isData = !inMail && /^DATA/i.test(text);
        inMail = isData;
        socket.write(isData ? '354 go on\r\n' : /^QUIT/i.test(text) ? '221 bye\r\n' : '250 ok\r\n');
      }
    });
    socket.on('error', () => undefined);
  });
}
