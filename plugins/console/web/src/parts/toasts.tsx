/** Messages that come and go at the edge of the page. Loaded behind the first page, which has none to say. */
import '@mantine/notifications/styles.css';
import { Notifications } from '@mantine/notifications';

export default function Toasts() {
  return <Notifications position="top-right" />;
}
