/** How a model has performed in the last hour, over all traffic. */
import { Badge, Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { ModelRow } from '../../api/types.ts';
import { countText, durationText, shareText } from '../../parts/format.ts';

export function ModelHealth({ row: { lastHour } }: { readonly row: ModelRow }) {
  const { t, i18n } = useTranslation();
  // Requests that clients got wrong say nothing of the model.
  const answered = lastHour === null ? 0 : lastHour.succeeded + lastHour.upstreamErrors;
  if (lastHour === null || answered === 0)
    return (
      <Text span fz="xs" c="dimmed" className="nowrap">
        {t('client.models.quiet')}
      </Text>
    );
  const { succeeded, upstreamErrors, firstByteP50Ms } = lastHour;
  const failing = upstreamErrors / answered;
  const words = t('client.models.healthy', {
    share: shareText(succeeded, answered, i18n.language),
    requests: countText(answered, i18n.language),
  });
  return (
    <Tooltip label={`${t('client.usage.firstByte')}: ${durationText(firstByteP50Ms)}`}>
      {failing < 0.02 ? (
        <Text span fz="sm" className="number nowrap">
          {words}
        </Text>
      ) : (
        <Badge size="sm" color={failing >= 0.2 ? 'red' : 'yellow'} variant="light" className="nowrap">
          {words}
        </Badge>
      )}
    </Tooltip>
  );
}
