/** Saves a result as a file. */
import { Button } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';

export function Download({ href, name }: { readonly href: string; readonly name: string }) {
  const { t } = useTranslation();
  return (
    <Button
      component="a"
      href={href}
      download={name}
      size="compact-sm"
      variant="subtle"
      leftSection={<IconDownload size={14} />}
    >
      {t('client.tasks.download')}
    </Button>
  );
}

/** An address for these bytes, as long as they are shown. */
export function useBlobAddress(blob: Blob | undefined): string | undefined {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    if (blob === undefined) return setAddress(undefined);
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return address;
}
