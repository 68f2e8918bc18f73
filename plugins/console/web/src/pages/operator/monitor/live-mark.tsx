/** Says whether the figures are pushed, or asked for every few seconds. */
import { Group, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useConnected } from '../../../api/live.ts';

export function LiveMark() {
  const { t } = useTranslation();
  const connected = useConnected();
  return (
    <Group gap={6} wrap="nowrap" role="status">
      <span className="live-dot" data-on={connected || undefined} aria-hidden />
      <Text fz="xs" c="dimmed">
        {connected ? t('shell.live.on') : t('shell.live.off')}
      </Text>
    </Group>
  );
}
