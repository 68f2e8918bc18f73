/** Shown instead of a picture or video after its file was deleted; the task is kept longer. */
import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';

export function ExpiredResult() {
  const { t } = useTranslation();
  return (
    <Text fz="sm" c="dimmed">
      {t('client.tasks.resultExpired')}
    </Text>
  );
}
