/** The viewer's time zone: days and hours on pages are those of this zone, and it is named where they are. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';

const known = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Its IANA name. Browsers that know none are taken for UTC. */
export const viewerZone: string = !known || known === 'Etc/Unknown' ? 'UTC' : known;

export function ZoneName() {
  const { t } = useTranslation();
  return (
    <Text span fz="xs" c="dimmed" className="nowrap">
      {t('shell.zone', { zone: viewerZone })}
    </Text>
  );
}
