import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Access } from './access.js';
import { Handler } from './handler.js';

test.each(['//', 'http://[', '/apis/usage.nvidia-virtual.io/v1alpha1/nodegpuusages'])(
  'a peer without a certificate is refused, whatever its path %j is',
  async (url) => {
    const handler = new Handler({
      board: {} as ConstructorParameters<typeof Handler>[0]['board'],
      access: {} as Access,
      frontProxy: () => undefined,
    });
    const asked = handler.handle(
      { url, method: 'GET', headersDistinct: {} } as IncomingMessage,
      {} as ServerResponse,
    );
    await expect(asked).rejects.toMatchObject({ code: 'NOT_THROUGH_API_SERVER' });
  },
);
